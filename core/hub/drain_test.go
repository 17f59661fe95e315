package hub_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// untilEnded reads a session to its end, and returns whether it was told that the hub drains.
func (g *testHub) untilEnded(s *hub.Session) (told bool) {
	g.t.Helper()
	for {
		b, err := s.Next(g.t.Context())
		if errors.Is(err, hub.ErrStopping) {
			return told
		}
		if err != nil {
			g.t.Fatalf("the end of the session: got %v, want %v", err, hub.ErrStopping)
		}
		told = told || b.Draining != ""
	}
}

// drain drains the hub.
func (g *testHub) drain() {
	g.t.Helper()
	if err := g.hub.Drain(operator); err != nil {
		g.t.Fatalf("draining: got %v, want no error", err)
	}
}

func TestADrainedHubTakesNothingNewAndEndsItsSessionsOnceItIsEmpty(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able, two), g.operator("zoe")
		running := g.ask(asker, "a")
		g.drain()
		if g.hub.Draining() == "" {
			t.Error("got no reason, want that the hub is draining")
		}
		_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("a new task", err, core.CodeUnreachable)
		g.wantFault("a new agent", g.connect("late").Join(core.Card{ID: "late"}, hub.JoinOptions{}), core.CodeUnreachable)
		synctest.Wait()
		select {
		case <-g.hub.Drained():
			t.Fatal("while a task runs: got the hub empty, want that it waits")
		default:
		}
		g.report(agent, running, core.Accepted{}, core.Done{})
		<-g.hub.Drained()
		if !running.HasEnded() || !running.IsRecorded() {
			t.Errorf("the task: got ended %t and recorded %t, want both", running.HasEnded(), running.IsRecorded())
		}
		for name, s := range map[string]*hub.Session{"agent": agent, "asker": asker, "one that comes later": g.connect("later")} {
			if !g.untilEnded(s) {
				t.Errorf("the %s: got no word, want that it is told that the hub drains", name)
			}
		}
		g.drain() // once more does no harm
	})
}

func TestAnAgentAsksForWhatItWorksOnWhileItsHubDrains(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		running := g.ask(g.operator("zoe"), "a")
		g.drain()
		g.report(a, running, core.Accepted{})
		child := g.ask(a, "b")
		g.report(b, child, core.Accepted{}, core.Done{})
		g.report(a, running, core.Done{})
		<-g.hub.Drained()
		_, err := a.Open(core.Request{To: core.ToAgent("b"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("a task for none that runs", err, core.CodeUnreachable)
	})
}

func TestAHubThatIsStoppedWhileItDrainsEndsWhatRuns(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("a", able)
		running := g.ask(g.operator("zoe"), "a")
		g.drain()
		stop(g.t, g.hub)
		if !running.HasEnded() {
			t.Error("got the task running, want that it has failed")
		}
		<-g.hub.Drained()
	})
}

// stop closes a hub at once.
func stop(t *testing.T, h *hub.Hub) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Close(ctx, "shutdown"); err != nil {
		t.Errorf("stopping the hub: got %v, want no error", err)
	}
}
