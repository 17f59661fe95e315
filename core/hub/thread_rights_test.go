package hub_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAnAgentGetsTheTurnsThatTheRequesterMayRead(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent := g.agent("a", able)
		operator := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "root", Authenticated: true, Operator: true}, Dialect: "test"})
		defer operator.Close(nil)
		for _, c := range []struct {
			asker *hub.Session
			says  string
			turns int
		}{
			{g.as("alice"), "the code is 42", 0},
			{g.as("bob"), "what is the code?", 0},
			{g.as("alice"), "what was the code?", 2},
			{operator, "what did they say?", 6},
			{g.connect("local"), "on an open hub nobody is anybody", 8},
		} {
			task, err := c.asker.Open(core.Request{To: core.ToAgent("a"), Thread: "t", Content: c.says}, hub.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := task.Request().History; len(got) != c.turns {
				t.Errorf("%s: got %d turns before, want %d", c.says, len(got), c.turns)
			}
			g.report(agent, task, core.Text{Text: "yes"}, core.Done{})
		}
	})
}
