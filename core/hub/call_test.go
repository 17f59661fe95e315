package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// called is the outcome of a call.
type called struct {
	out *tool.Result
	err error
}

// call calls a tool in a goroutine.
func (g *testHub) call(ctx context.Context, s *hub.Session, name, input string) <-chan called {
	done := make(chan called, 1)
	go func() {
		out, err := s.Call(ctx, name, json.RawMessage(input))
		done <- called{out, err}
	}()
	synctest.Wait()
	return done
}

func TestACallReturnsItsResultOnlyToItsCaller(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		ann, bob := g.agent("ann", able), g.agent("bob", able)
		done := g.call(g.t.Context(), ann, "agent_ask", `{"to":"bob","content":"how much?"}`)
		task := g.assigned(bob)
		g.report(bob, task, core.Text{Text: "42"}, core.Done{})
		if c := <-done; c.err != nil || c.out.Fault != nil || !strings.Contains(string(c.out.Output), `"text":"42"`) {
			t.Errorf("got %+v, want 42", c)
		}
		if b, ok := g.batch(ann); ok {
			t.Errorf("the session: got %+v, want nothing", b)
		}
		if c := <-g.call(g.t.Context(), ann, "nothing", `{}`); c.err != nil || c.out.Fault == nil {
			t.Errorf("an unknown tool: got %+v, want a fault", c)
		}
	})
}

func TestACallIsCausedByTheTaskOfItsSession(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		ann, bob, carl := g.agent("ann", able), g.agent("bob", able), g.agent("carl", able)
		asked := g.ask(ann, "bob")
		if c := <-g.call(g.t.Context(), bob, "agent_ask", `{"to":"ann","content":"you do"}`); c.err != nil || c.out.Fault == nil || c.out.Fault.Code != core.CodeLoop {
			t.Errorf("asking back: got %+v, want a loop", c)
		}
		if c := <-g.call(g.t.Context(), bob, "agent_ask", `{"to":"bob","content":"I do"}`); c.err != nil || c.out.Fault == nil || c.out.Fault.Code != core.CodeLoop {
			t.Errorf("asking itself: got %+v, want a loop", c)
		}
		done := g.call(g.t.Context(), bob, "agent_ask", `{"to":"carl","content":"you do"}`)
		task := g.assigned(carl)
		if task.Request().Cause != asked.ID() || task.From().ID != "bob" {
			t.Errorf("got cause %q from %+v, want %q from bob", task.Request().Cause, task.From(), asked.ID())
		}
		g.report(carl, task, core.Done{})
		<-done
		g.report(bob, asked, core.Done{})
		// A task that ended a moment ago still counts as the cause.
		later := g.call(g.t.Context(), bob, "agent_ask", `{"to":"ann","content":"thanks"}`)
		back := g.assigned(ann)
		if back == asked { // ann reads that first
			back = g.assigned(ann)
		}
		if back.Request().Cause != asked.ID() || back.Hops() != 1 {
			t.Errorf("asking back later: got %d hops below %q, want 1 below %s", back.Hops(), back.Request().Cause, asked.ID())
		}
		g.report(ann, back, core.Done{})
		<-later
	})
}

func TestAnAbandonedCallCancelsItsTask(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		ann, bob := g.agent("ann", able), g.agent("bob", able)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(g.t.Context())
		done := g.call(ctx, ann, "agent_ask", `{"to":"bob","content":"how much?"}`)
		task := g.assigned(bob)
		cancel(why)
		if c := <-done; !errors.Is(c.err, why) {
			t.Errorf("got %+v, want %v", c, why)
		}
		g.report(bob, task, core.Cancelled{})
		if got := task.Answer().End; got != core.KindCancelled {
			t.Errorf("got %s, want the task cancelled", got)
		}
	})
}

func TestATaskThatACallDelegatesContinues(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		ann, bob := g.agent("ann", able), g.agent("bob", able)
		<-g.call(g.t.Context(), ann, "agent_delegate", `{"to":"bob","content":"build it"}`)
		task := g.assigned(bob)
		done := g.call(g.t.Context(), ann, "agent_result", `{"task_id":"`+string(task.ID())+`","wait_seconds":60}`)
		g.report(bob, task, core.Text{Text: "built"}, core.Done{})
		if c := <-done; c.err != nil || !strings.Contains(string(c.out.Output), `"text":"built"`) {
			t.Errorf("got %+v, want the result of the task", c)
		}
	})
}

func TestACallEndsWithItsSession(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		ann, bob := g.agent("ann", able), g.agent("bob", able)
		asks, waits := g.call(g.t.Context(), ann, "agent_ask", `{"to":"bob","content":"how much?"}`), ann.Child()
		task := g.assigned(bob)
		ann.Close(core.NewFault(core.CodeUnreachable, "gone fishing"))
		if c := <-asks; c.err == nil || !strings.Contains(c.err.Error(), "gone fishing") {
			t.Errorf("got %+v, want the reason why the session ended", c)
		}
		g.report(bob, task, core.Cancelled{})
		if _, err := waits.Next(g.t.Context()); err == nil || !strings.Contains(err.Error(), "gone fishing") {
			t.Errorf("a child session: got %v, want the reason why the session ended", err)
		}
		if c := <-g.call(g.t.Context(), ann, "agent_ask", `{"to":"bob","content":"again?"}`); c.err == nil && c.out.Fault == nil {
			t.Errorf("after the end: got %+v, want a fault", c)
		}
		waits.Close(nil)
	})
}

func TestACallDoesNotWaitForAReaderOfItsSession(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		ann, bob := g.agent("ann", able), g.agent("bob", able, func(c *core.Card) { c.MaxConcurrent = 100 })
		var all []<-chan called
		for range 100 {
			all = append(all, g.call(g.t.Context(), ann, "agent_ask", `{"to":"bob","content":"how much?"}`))
		}
		for range 100 {
			g.report(bob, g.assigned(bob), core.Done{})
		}
		for _, done := range all {
			if c := <-done; c.err != nil || c.out.Fault != nil {
				t.Fatalf("got %+v, want an answer", c)
			}
		}
		g.sleep(time.Second)
	})
}

// The race detector shows whether the two are synchronised.
func TestASessionMayBeExpelledWhileItCreatesChildren(t *testing.T) {
	g := &testHub{t, hub.New(hub.Options{})}
	t.Cleanup(func() {
		if err := g.hub.Close(t.Context(), "over"); err != nil {
			t.Error(err)
		}
	})
	for range 300 {
		g.hub.Expel(func(core.Principal) bool { return true })
		parent := g.as("alice")
		var expelling sync.WaitGroup
		expelling.Go(func() {
			for range 3 {
				g.hub.Expel(func(core.Principal) bool { return false })
			}
		})
		for range 3 {
			parent.Child().Close(nil)
		}
		expelling.Wait()
	}
}
