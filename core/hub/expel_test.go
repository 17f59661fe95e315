package hub_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAnExpelledPrincipalCannotConnectAgain(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		alice, bob, nobody := g.as("alice"), g.as("bob"), g.connect("local")
		for _, s := range []*hub.Session{alice, bob, nobody} {
			if err := s.Join(core.Card{ID: core.AgentID(s.Identity().Principal.ID)}, hub.JoinOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		g.hub.Expel(func(p core.Principal) bool { return p.ID != "bob" })
		g.wantAgents("without bob", "alice", "local")
		// One who was let in just before, and begins his session only now.
		for _, s := range []*hub.Session{bob, g.as("bob")} {
			_, err := s.Next(t.Context())
			g.wantFault("what bob is told", err, core.CodeUnauthenticated)
		}
		if err := g.as("alice").Join(core.Card{ID: "second"}, hub.JoinOptions{}); err != nil {
			t.Errorf("alice again: got %v, want no error", err)
		}
	})
}
