package render_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

// discard reports every frame as sent at once.
type discard struct{}

func (discard) SendThen(_ context.Context, _ []byte, _ int, sent func()) error {
	if sent != nil {
		sent()
	}
	return nil
}

// BenchmarkViewText renders one chunk of 64 bytes in answers of 5,000 chunks.
func BenchmarkViewText(b *testing.B) {
	for _, how := range []render.Snapshots{render.SnapshotsAll, render.SnapshotsNone} {
		b.Run([]string{"", "snapshots", "deltas"}[how], func(b *testing.B) {
			e := core.Event{At: atNoon, Body: core.Text{Text: strings.Repeat("x", 64)}}
			b.ReportAllocs()
			v, n := newView(how), 0
			for b.Loop() {
				if n++; n%5000 == 0 {
					v = newView(how)
				}
				_ = e.Deliver(v)
				v.Flush()
				v.out.Send(b.Context(), discard{})
			}
		})
	}
}
