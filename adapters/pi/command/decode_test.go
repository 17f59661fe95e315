package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func promptFrame(size int) []byte {
	return fmt.Appendf(nil, `{"id":"cmd-1","type":"prompt","sessionId":"019a0000-0000-7000-8000-000000000001","idempotencyKey":"k-1","message":%q}`,
		strings.Repeat("What of 'this' and \"that\"?\n", 1+size/30))
}

// lengths are the lengths of the messages of prompts, by the size of the frames.
var lengths = map[string]int{"250 bytes": 100, "64 KiB": 63_000, "1 MB": 1_000_000}

func decodePrompt(t testing.TB, frame []byte) command.Command {
	c, err := command.Decode(frame, 2_000_000)
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := c.Text("message"); !ok || text == "" {
		t.Fatal("got no message")
	}
	return c
}

// The fingerprint, which is a digest of the whole command, reads a message with escapes once
// more.
func TestACommandIsScannedAtMostTwiceToBeDecoded(t *testing.T) {
	for name, size := range lengths {
		frame := promptFrame(size)
		looked := strictjson.Visits(func() { _ = decodePrompt(t, frame) })
		if most := 2 * int64(len(frame)); looked > most {
			t.Errorf("%s: looked at %d bytes of a command of %d, want at most %d", name, looked, len(frame), most)
		}
	}
}

// BenchmarkSubmit decodes, checks and replays a command.
func BenchmarkSubmit(b *testing.B) {
	for name, size := range lengths {
		frame := promptFrame(size)
		b.Run(name, func(b *testing.B) {
			h := &host{}
			e, c := newEngine(b, h, command.Options{Rates: unlimited})
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				e.Submit(c, decodePrompt(b, frame), &command.Execution{})
				h.frames = nil
			}
		})
	}
}
