package pack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// BenchmarkCall measures one call of a tool, from the caller through the hub to the server and
// back, over a pipe. The server answers at once, without a JSON library.
func BenchmarkCall(b *testing.B) {
	h := hub.New(hub.Options{})
	defer h.Close(context.Background(), "over")
	session := h.Connect(hub.Identity{Principal: core.Principal{ID: "p"}})
	caller := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
	defer session.Close(nil)
	defer caller.Close(nil)
	p, err := pack.New(pack.Options{Name: "p", Dial: dial(func(end *coretest.End[[]byte, []byte]) { go answerAll(end) })})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, end := make(chan struct{}), make(chan struct{})
	go func() { _ = p.Run(ctx, session, func() { close(ready) }); close(end) }()
	<-ready
	for b.Loop() {
		caller.CallTool("c", "p.x", json.RawMessage(`{"message":"hello"}`))
		if got, err := caller.Next(ctx); err != nil || got.Tool == nil || got.Tool.Fault != nil {
			b.Fatalf("got %+v and %v, want a result", got, err)
		}
	}
	cancel()
	<-end
	p.Stop()
}

// answerAll is a server that knows every request by its words.
func answerAll(end *coretest.End[[]byte, []byte]) {
	for {
		line, err := end.Receive(context.Background())
		if err != nil {
			_ = end.Close(link.Reason{Cause: link.Normal})
			return
		}
		_, id, _ := bytes.Cut(line, []byte(`"id":`))
		id, _, _ = bytes.Cut(id, []byte(","))
		result := `{"content":[{"type":"text","text":"hello"}]}`
		switch {
		case !bytes.Contains(line, []byte(`"id":`)):
			continue
		case bytes.Contains(line, []byte(`"server/discover"`)):
			result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
		case bytes.Contains(line, []byte(`"tools/list"`)):
			result = `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
		}
		if end.Send(context.Background(), []byte(`{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+result+`}`)) != nil {
			return
		}
	}
}
