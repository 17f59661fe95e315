package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func aPrompt(size int) []byte {
	return fmt.Appendf(nil, `{"id":"cmd-1","type":"prompt","sessionId":"019a0000-0000-7000-8000-000000000001","idempotencyKey":"k-1","message":%q}`,
		strings.Repeat("What of 'this' and \"that\"?\n", 1+size/30))
}

// lengths are those of the messages in the prompts that come.
var lengths = map[string]int{"250 bytes": 100, "64 KiB": 63_000, "1 MB": 1_000_000}

func readPrompt(t testing.TB, frame []byte) Command {
	c, err := Decode(frame, 2_000_000)
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := c.Text("message"); !ok || text == "" {
		t.Fatal("got no message")
	}
	return c
}

// What a command is for is read at most twice. Its fingerprint is a digest of what it
// says, which is one look more at a message with escapes.
func TestACommandIsReadAtMostTwiceOnItsWayIn(t *testing.T) {
	for name, size := range lengths {
		frame := aPrompt(size)
		looked := strictjson.Visits(func() { _ = readPrompt(t, frame) })
		if most := 2 * int64(len(frame)); looked > most {
			t.Errorf("%s: looked at %d bytes of a command of %d, want at most %d", name, looked, len(frame), most)
		}
	}
}

func BenchmarkWayIn(b *testing.B) {
	for name, size := range lengths {
		frame := aPrompt(size)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				_ = fingerprintOf(readPrompt(b, frame))
			}
		})
	}
}
