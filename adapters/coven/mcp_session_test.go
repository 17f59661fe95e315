package coven_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestTheTokenOfAnAgentIsRevokedWhenItsConnectionEnds(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		var mu sync.Mutex
		var log []string
		record := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, what)
		}
		opts := coven.Options{
			MCPEndpoint: "http://127.0.0.1:8080/mcp",
			MCPToken: func(s *hub.Session) (string, func()) {
				record("issued to " + s.Identity().Principal.ID)
				return "the token", func() {
					if len(h.Agents(core.Principal{Operator: true})) == 0 {
						record("too late: the agent has left")
					}
					record("revoked")
				}
			},
		}
		a, w := join(t, h, opts, "a")
		if w.GetMcpToken() != "the token" {
			t.Errorf("got the token %q, want the one that was issued", w.GetMcpToken())
		}
		a.hangUp()
		synctest.Wait()
		if want := []string{"issued to a", "revoked"}; !slices.Equal(log, want) {
			t.Errorf("got %q, want %q", log, want)
		}
		opts.MCPEndpoint = ""
		b, w := join(t, h, opts, "b")
		if w.GetMcpToken() != "" || w.GetMcpEndpoint() != "" {
			t.Errorf("without an endpoint: got %q and a token %q, want neither", w.GetMcpEndpoint(), w.GetMcpToken())
		}
		b.hangUp()
	})
}
