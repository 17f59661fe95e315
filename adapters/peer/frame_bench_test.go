package peer

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// BenchmarkEvents measures what the events of a short answer cost between two hubs.
func BenchmarkEvents(b *testing.B) {
	now := time.Now().UTC()
	events := []core.Event{
		{Seq: 2, Epoch: 1, At: now, Body: core.Assigned{Agent: "bob", Attempt: 1, Dialect: "coven"}},
		{Seq: 3, Epoch: 1, At: now, Body: core.Text{Text: "because"}},
		{Seq: 4, Epoch: 1, At: now, Body: core.Done{Text: "because"}},
	}
	frame, err := appendEvents(nil, core.TaskID(core.NewID()), events)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := appendEvents(nil, "0", events); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := decodeEvents(frame[1:]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
