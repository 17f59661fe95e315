package pi

import (
	"fmt"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestTheDialectsOfAgentsThatHaveLeftAreNotKeptForEver(t *testing.T) {
	h, s := newStage(t, Options{})
	join(t, h, core.Card{ID: "here", Dialect: "coven"}, func(*joined, hub.Batch) {})
	for i := range 3 * maxDialects {
		s.dialects.note(core.AgentID(fmt.Sprint("agent-", i)), "acp")
	}
	if kept := s.dialects.known.Len(); kept > maxDialects {
		t.Errorf("got %d agents, want at most %d", kept, maxDialects)
	}
	if got := s.dialects.of(core.AgentID(fmt.Sprint("agent-", 3*maxDialects-1))); got != "acp" {
		t.Errorf("the last who left: got %q, want acp", got)
	}
	if got := s.dialects.of("here"); got != "coven" {
		t.Errorf("who is here: got %q, want coven", got)
	}
}
