package a2a_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// BenchmarkChunk measures what a chunk of 64 bytes costs from the log of its task to the bytes
// of its item, beside the event in the hub's own form, which REST sends.
func BenchmarkChunk(b *testing.B) {
	h := hub.New(hub.Options{})
	defer func() {
		if err := h.Close(b.Context(), "done"); err != nil {
			b.Error(err)
		}
	}()
	agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "test"})
	if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
		b.Fatal(err)
	}
	user := h.Connect(hub.Identity{Principal: core.Principal{ID: "u"}, Dialect: "test"})
	t, err := user.Open(core.Request{Intent: core.IntentAsk, To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Unwatched: true})
	if err != nil {
		b.Fatal(err)
	}
	e := core.Event{Seq: 2, Epoch: 1, At: time.Now(), Body: core.Text{Text: strings.Repeat("a \"piece\" ", 6) + "äöü"}}
	for name, cursors := range map[string]bool{"a2a": false, "a2a with cursors": true} {
		b.Run(name, func(b *testing.B) {
			f := a2a.NewFeed(t, cursors)
			f.Write(e)
			b.ReportAllocs()
			for b.Loop() {
				e.Seq++
				f.Write(e)
			}
		})
	}
	b.Run("event", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			e.Seq++
			if buf, err = e.AppendJSON(buf[:0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	agent.Close(nil)
}
