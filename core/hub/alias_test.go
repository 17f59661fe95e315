package hub_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAnAliasIsTheBeginningOfTheDigestOfTheID(t *testing.T) {
	// printf %s kit | sha256sum
	if got, want := hub.Alias("kit"), core.AgentID("cbc8a597a67c465497550c4a4a7eebdb"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, c := range []struct {
		text string
		id   core.AgentID
		want bool
	}{
		{"kit", "kit", true},
		{string(hub.Alias("kit")), "kit", true},
		{strings.ToUpper(string(hub.Alias("kit"))), "kit", true},
		{"ed25519." + string(hub.Alias("kit")), "kit", true},
		{"ed25519.21fe31dfa154a261626bf854046fd227", "21FE31DFA154A261626BF854046FD227", true},
		{"21fe31dfa154a261626bf854046fd227", "ed25519.21fe31dfa154a261626bf854046fd227", true},
		{"Kit", "kit", false},
		{string(hub.Alias("kat")), "kit", false},
		{"", "kit", false},
	} {
		if got := hub.SameAgent(c.text, c.id); got != c.want {
			t.Errorf("SameAgent(%q, %q): got %t, want %t", c.text, c.id, got, c.want)
		}
	}
}

func TestAnAliasOutlivesAnotherAgentWhoseIDItIs(t *testing.T) {
	onStage(t, hub.Limits{}, func(g *stage) {
		g.agent("a", able)
		other := g.agent(string(hub.Alias("a")), able)
		if got, _ := g.hub.Agent(hub.Alias("a")); got.ID != hub.Alias("a") {
			t.Errorf("while the other is here: got %q, want the other", got.ID)
		}
		other.Close(nil)
		if got, ok := g.hub.Agent(hub.Alias("a")); !ok || got.ID != "a" {
			t.Errorf("once it has left: got %q, want a", got.ID)
		}
	})
}
