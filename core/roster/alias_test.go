package roster_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

func TestAnAliasIsTheBeginningOfTheDigestOfTheID(t *testing.T) {
	// printf %s kit | sha256sum
	if got, want := roster.Alias("kit"), core.AgentID("cbc8a597a67c465497550c4a4a7eebdb"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, c := range []struct {
		text string
		id   core.AgentID
		want bool
	}{
		{"kit", "kit", true},
		{string(roster.Alias("kit")), "kit", true},
		{strings.ToUpper(string(roster.Alias("kit"))), "kit", true},
		{"ed25519." + string(roster.Alias("kit")), "kit", true},
		{"ed25519.21fe31dfa154a261626bf854046fd227", "21FE31DFA154A261626BF854046FD227", true},
		{"21fe31dfa154a261626bf854046fd227", "ed25519.21fe31dfa154a261626bf854046fd227", true},
		{"Kit", "kit", false},
		{string(roster.Alias("kat")), "kit", false},
		{"", "kit", false},
	} {
		if got := roster.SameAgent(c.text, c.id); got != c.want {
			t.Errorf("SameAgent(%q, %q): got %t, want %t", c.text, c.id, got, c.want)
		}
	}
}
