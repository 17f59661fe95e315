package mcp

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// BenchmarkChunk is what a chunk of an answer costs a call whose client wants progress.
func BenchmarkChunk(b *testing.B) {
	r, now := &run{}, time.Now()
	p := &progress{token: []byte("1"), tool: askTool, began: now, silence: 10 * time.Second}
	_ = p.next(r, now)
	e := core.Event{Body: core.Text{Text: "a chunk of some forty bytes, as models send"}}
	b.ReportAllocs()
	for b.Loop() {
		e.Seq++
		r.note(e)
		if p.isDue(r, now) {
			b.Fatal("got progress, want none so soon")
		}
	}
}
