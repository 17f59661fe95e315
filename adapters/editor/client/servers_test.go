package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func TestTheMCPServersOfASessionAreToldItsThread(t *testing.T) {
	tell := func(o *client.Options) {
		o.MCPServers = func(thread core.ThreadID) []wire.MCPServer {
			return []wire.MCPServer{{Name: "hub", URL: "https://example.com/mcp", Headers: []wire.Variable{{Name: "Thread", Value: string(thread)}}}}
		}
	}
	serve(t, tell, func(s *served) {
		p, stop := s.start(`{"mcpCapabilities":{"http":true,"sse":false}}`)
		for what, thread := range map[string]core.ThreadID{"a thread": "trip", "no thread": ""} {
			asked := s.open(core.Request{Content: "x", Thread: thread})
			want := string(asked.Thread())
			m := p.wants("session/new")
			if got := string(m.Params.Get("mcpServers").Raw()); want == "" || got != `[{"type":"http","name":"hub","url":"https://example.com/mcp","headers":[{"name":"Thread","value":"`+want+`"}]}]` {
				s.Errorf("%s: got %s, want the thread %q", what, got, want)
			}
			p.fails(m, -32603, "no")
			synctest.Wait()
		}
		_ = stop()
	})
}
