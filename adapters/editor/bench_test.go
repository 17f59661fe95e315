package editor_test

import (
	"context"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// BenchmarkChunk measures a piece of an answer from the agent's report to the editor's frame.
func BenchmarkChunk(b *testing.B) {
	h := coretest.NewHub(b, hub.Options{ID: "hub1"})
	coder := h.Connect(hub.Identity{Principal: core.Principal{ID: "coder"}, Dialect: "test"})
	defer coder.Close(nil)
	if err := coder.Join(core.Card{ID: "coder", Features: core.FeatureStreaming}, hub.JoinOptions{}); err != nil {
		b.Fatal(err)
	}
	conn, far := coretest.Pipe[[]byte, []byte](64)
	served := make(chan link.Reason, 1)
	go func() {
		served <- editor.Serve(context.Background(), h, far, editor.Options{Agent: core.ToAgent("coder")})
	}()
	ctx := context.Background()
	do := func(line string) string {
		if err := conn.Send(ctx, []byte(line)); err != nil {
			b.Fatal(err)
		}
		m, err := conn.Receive(ctx)
		if err != nil {
			b.Fatal(err)
		}
		return string(m)
	}
	do(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	m := do(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/a","mcpServers":[]}}`)
	session := m[len(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"`) : len(m)-len(`"}}`)]
	prompt := `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[{"type":"text","text":"go"}]}}`
	if err := conn.Send(ctx, []byte(prompt)); err != nil {
		b.Fatal(err)
	}
	batch, err := coder.Next(ctx)
	if err != nil {
		b.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			m, err := conn.Receive(ctx)
			if err != nil || m[len(`{"jsonrpc":"2.0",`)] == '"' && m[len(`{"jsonrpc":"2.0","`)] == 'i' {
				return
			}
		}
	}()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := coder.Report(batch.Task.ID(), core.Text{Text: "a piece of an answer of some length, "}, nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := coder.Report(batch.Task.ID(), core.Done{}, nil); err != nil {
		b.Fatal(err)
	}
	<-read
	b.StopTimer()
	_ = conn.Close(link.Reason{Cause: link.Normal})
	<-served
}
