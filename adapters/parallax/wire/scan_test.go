package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// taskRequest returns a task_request with earlier turns of size bytes together.
func taskRequest(turns, size int) []byte {
	var b strings.Builder
	b.WriteString(`{"type":"task_request","id":"m1","timestamp":"2024-01-15T10:30:05.000Z","payload":{"requestId":"ask_1","to":"b","timeout":30000,"priority":"normal","context":{"stepIndex":0,"totalSteps":1},"input":{"content":"What of \"this\"?"`)
	for i := range turns {
		b.WriteString(map[bool]string{true: `,"history":[`, false: `,`}[i == 0])
		fmt.Fprintf(&b, `{"role":"%s","content":%q,"agent":"a","taskId":"019a0000-0000-7000-8000-%012d","timestamp":"2024-01-15T10:30:05.000Z"}`,
			[]string{"user", "assistant"}[i%2], strings.Repeat("An answer, of 'this' and \"that\".\n", max(1, size/turns/34)), i)
	}
	if turns > 0 {
		b.WriteString("]")
	}
	b.WriteString(`}}}`)
	return []byte(b.String())
}

// lengths has the lengths of typical frames.
var lengths = []struct {
	name        string
	turns, size int
}{{"250 bytes", 0, 0}, {"64 KiB", 240, 33_000}, {"1 MB", 300, 880_000}}

func readTaskRequest(t testing.TB, frame []byte, turns int) {
	m, err := wire.Decode(frame)
	if err != nil {
		t.Fatal(err)
	}
	p, err := wire.ReadPayload[wire.TaskRequest](m)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Request(time.Now())
	if err != nil || len(r.History) != turns || m.Foreign(wire.TaskShape.Strip(m.Content())) != nil {
		t.Fatalf("got %d turns and %v, want %d and no unknown members", len(r.History), err, turns)
	}
}

func TestAMessageIsScannedAtMostTwice(t *testing.T) {
	for _, c := range lengths {
		frame := taskRequest(c.turns, c.size)
		scanned := strictjson.Visits(func() { readTaskRequest(t, frame, c.turns) })
		if most := 2 * int64(len(frame)); scanned > most {
			t.Errorf("%s: scanned %d bytes of a message of %d, want at most %d", c.name, scanned, len(frame), most)
		}
	}
	said := fmt.Sprintf("%q", strings.Repeat("An \"answer\".\n", 2000))
	for _, frame := range []string{
		`{"type":"task_result","payload":{"taskId":"t","status":"completed","result":{"content":` + said + `,"files":[{"name":"a","data":"` + strings.Repeat("QUJD", 5000) + `"}],"data":[` + strings.Repeat("1.5,", 2000) + `1]},
			"metadata":{"tokensUsed":5,"progress":[{"thinking":` + said + `},{"toolCall":{"id":"t","name":"n","input":{"a":` + said + `}}}]},"more":[` + strings.Repeat("1.5,", 2000) + `1]}}`,
		`{"type":"task_error","payload":{"taskId":"t","error":{"code":"TIMEOUT","message":` + said + `},"partialResult":` + said + `}}`,
		`{"type":"task_progress","payload":{"taskId":"t","seq":1,"text":` + said + `,"more":` + said + `}}`,
	} {
		scanned := strictjson.Visits(func() {
			m, err := wire.Decode([]byte(frame))
			if err != nil {
				t.Fatal(err)
			}
			switch m.Type {
			case wire.TypeTaskResult:
				p, err := wire.ReadPayload[wire.TaskResult](m)
				if bodies := p.Bodies(false, false); err != nil || len(bodies) != 6 {
					t.Errorf("got %d events and %v, want thinking, a tool call, usage, text, a file and the end", len(bodies), err)
				}
				_ = m.Foreign(wire.ResultShape.Strip(m.Content()))
			case wire.TypeTaskError:
				p, err := wire.ReadPayload[wire.TaskError](m)
				if bodies := p.Bodies(false, false); err != nil || len(bodies) != 2 {
					t.Errorf("got %d events and %v, want text and the end", len(bodies), err)
				}
				_ = m.Foreign(wire.ErrorShape.Strip(m.Content()))
			case wire.TypeTaskProgress:
				p, err := wire.ReadPayload[wire.Progress](m)
				if bodies, err2 := p.Bodies(); err != nil || err2 != nil || len(bodies) != 1 || p.Unknown == nil {
					t.Errorf("got %d events, %v, %v and %s, want text and the unknown member", len(bodies), err, err2, p.Unknown)
				}
			}
		})
		if most := 2 * int64(len(frame)); scanned > most {
			t.Errorf("%.30s: scanned %d bytes of a message of %d, want at most %d", frame, scanned, len(frame), most)
		}
	}
}

func BenchmarkTaskRequest(b *testing.B) {
	for _, c := range lengths {
		frame := taskRequest(c.turns, c.size)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				readTaskRequest(b, frame, c.turns)
			}
		})
	}
}
