package acp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// aQuery returns a query with a history of turns that have size bytes together.
func aQuery(turns, size int) []byte {
	var b strings.Builder
	b.WriteString(`{"v":1,"id":"019a0000-0000-7000-8000-000000000001","from":"a","to":"b","ts":1771108000000,"kind":"query","ref":null,"payload":{"question":"What of \"this\"?","domain":"family.calendar","max_tokens":500,"deadline_ms":30000`)
	for i := range turns {
		b.WriteString(map[bool]string{true: `,"context":{"history":[`, false: `,`}[i == 0])
		fmt.Fprintf(&b, `{"role":"%s","text":%q,"agent":"a"}`, []string{"user", "assistant"}[i%2], strings.Repeat("An answer, of 'this' and \"that\".\n", max(1, size/turns/34)))
	}
	if turns > 0 {
		b.WriteString("]}")
	}
	b.WriteString(`}}`)
	return []byte(b.String())
}

// lengths are the lengths of the frames.
var lengths = []struct {
	name        string
	turns, size int
}{{"250 bytes", 0, 0}, {"64 KiB", 240, 48_000}, {"1 MB", 300, 900_000}}

func readQuery(t testing.TB, frame []byte, turns int) {
	e, err := wire.Decode(frame, 2_000_000)
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Request(time.Now()); err != nil || len(r.History) != turns {
		t.Fatalf("got %d turns and %v, want %d", len(r.History), err, turns)
	}
}

func TestAnEnvelopeIsScannedAtMostTwice(t *testing.T) {
	for _, c := range lengths {
		frame := aQuery(c.turns, c.size)
		scanned := strictjson.Visits(func() { readQuery(t, frame, c.turns) })
		if most := 2 * int64(len(frame)); scanned > most {
			t.Errorf("%s: scanned %d bytes of a frame of %d, want at most %d", c.name, scanned, len(frame), most)
		}
	}
	answer := fmt.Appendf(nil, `{"id":"1","kind":"response","ref":"q","payload":{"summary":%q,"data":{"value":[%s1],"files":[{"name":"a","data":"%s"}]}}}`,
		strings.Repeat("An \"answer\".\n", 2000), strings.Repeat("1.5,", 2000), strings.Repeat("QUJD", 5000))
	scanned := strictjson.Visits(func() {
		e, err := wire.Decode(answer, 2_000_000)
		if err == nil {
			err = e.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		if bodies, err := e.Bodies(); err != nil || len(bodies) != 2 {
			t.Fatalf("got %v and %v, want a file and an end", bodies, err)
		}
	})
	if most := 2 * int64(len(answer)); scanned > most {
		t.Errorf("an answer: scanned %d bytes of a frame of %d, want at most %d", scanned, len(answer), most)
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range lengths {
		frame := aQuery(c.turns, c.size)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				readQuery(b, frame, c.turns)
			}
		})
	}
}
