package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
)

func BenchmarkReadProgress(b *testing.B) {
	frame := fmt.Appendf(nil, `{"type":"task_progress","id":"agent_123","timestamp":"2024-01-15T10:30:05.000Z","payload":{"taskId":"019a0000-0000-7000-8000-000000000000","executionId":"019a0000-0000-7000-8000-000000000000.1","seq":17,"text":%q}}`, "a piece of the answer that has some sixty-four bytes, as they do.")
	b.ReportAllocs()
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		m, err := wire.Decode(frame)
		if err != nil {
			b.Fatal(err)
		}
		p, err := wire.ReadPayload[wire.Progress](m)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Bodies(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteProgress(b *testing.B) {
	p := wire.Progress{TaskRef: wire.TaskRef{TaskID: "019a0000-0000-7000-8000-000000000000", ExecutionID: "019a0000-0000-7000-8000-000000000000.1"}, Seq: 17, Item: wire.Item{Text: new("a piece of the answer that has some sixty-four bytes, as they do.")}}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Encode(wire.TypeTaskProgress, "agent_123", now, p); err != nil {
			b.Fatal(err)
		}
	}
}
