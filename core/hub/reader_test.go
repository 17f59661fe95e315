package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// batches reads all batches that are ready for the session.
func (g *testHub) batches(s *hub.Session) []hub.Batch {
	g.t.Helper()
	var all []hub.Batch
	for {
		b, ok := g.batch(s)
		if !ok {
			return all
		}
		all = append(all, b)
	}
}

func two(c *core.Card) { c.MaxConcurrent = 2 }

func TestTheTasksOfASessionTakeTurns(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able, two), g.connect("r")
		tasks := [2]*task.Task{g.ask(asker, "a"), g.ask(asker, "a")}
		const words = 1000
		for _, task := range tasks {
			for range words {
				g.report(agent, task, core.Text{Text: "x"})
			}
			g.report(agent, task, core.Done{})
		}
		got := map[*task.Task][]core.Event{}
		var last *task.Task
		for i, b := range g.batches(asker) {
			if len(b.Events) > 256 {
				t.Errorf("batch %d: got %d events, want at most 256", i+1, len(b.Events))
			}
			if b.Task == last {
				t.Errorf("batch %d: got the same task twice in a row, want another one", i+1)
			}
			last = b.Task
			got[b.Task] = append(got[b.Task], b.Events...)
		}
		for i, task := range tasks {
			if n, want := len(got[task]), words+3; n != want {
				t.Errorf("task %d: got %d events, want %d", i+1, n, want)
			}
			for j, e := range got[task] {
				if e.Seq != uint64(j+1) {
					t.Fatalf("task %d: got sequence %d at place %d, want %d", i+1, e.Seq, j+1, j+1)
				}
			}
		}
	})
}

func TestConcurrentTasksOfOneAgentAreSeparate(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able, two), g.connect("r")
		one, other := g.ask(asker, "a"), g.ask(asker, "a")
		var wants [2]strings.Builder
		for i := range 500 {
			for n, task := range []*task.Task{one, other} {
				piece := fmt.Sprintf("%d-%d ", n, i)
				wants[n].WriteString(piece)
				g.report(agent, task, core.Text{Text: piece})
			}
		}
		g.report(agent, other, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")})
		g.report(agent, one, core.Done{})
		got := map[*task.Task][]core.Event{}
		for _, b := range g.batches(asker) {
			got[b.Task] = append(got[b.Task], b.Events...)
		}
		for n, task := range []*task.Task{one, other} {
			if text(got[task]) != wants[n].String() {
				t.Errorf("task %d: got %d bytes of text, want its own %d", n+1, len(text(got[task])), wants[n].Len())
			}
		}
		if a, b := one.Answer().End, other.Answer().End; a != core.KindDone || b != core.KindFailed {
			t.Errorf("got the ends %s and %s, want done and failed", a, b)
		}
	})
}

func TestACancelReachesAnAgentAfterManyEvents(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.wantKinds("the agent read", g.events(agent), "assigned")
		for range 2000 {
			g.report(agent, task, core.Text{Text: "x"})
		}
		if err := asker.Cancel(task.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		g.wantKinds("the agent read then", g.events(agent), "cancel_requested")
		g.report(agent, task, core.Cancelled{})
	})
}

func TestASessionMayAskAndAnswerConcurrently(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		outer := g.ask(asker, "a")
		inner, err := a.Open(core.Request{To: core.ToAgent("b"), Content: "help"}, hub.OpenOptions{Tag: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		g.report(b, inner, core.Text{Text: "42"}, core.Done{})
		roles := map[task.Role]*task.Task{}
		for _, batch := range g.batches(a) {
			roles[batch.Role] = batch.Task
			if want := map[task.Role]any{task.Agent: nil, task.Requester: "mine"}[batch.Role]; batch.Tag != want {
				t.Errorf("role %d: got the tag %v, want %v", batch.Role, batch.Tag, want)
			}
		}
		if roles[task.Agent] != outer || roles[task.Requester] != inner {
			t.Errorf("got %v, want the roles agent and requester", roles)
		}
		g.report(a, outer, core.Text{Text: inner.Answer().Text}, core.Done{})
		if got := outer.Answer().Text; got != "42" {
			t.Errorf("got %q, want 42", got)
		}
	})
}

func TestTheRequestsOfALeavingAgentAreCancelled(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		outer, inner := g.ask(asker, "a"), g.ask(a, "b")
		a.Close(nil)
		if f := outer.Answer().Fault; f == nil || f.Code != core.CodeUnreachable {
			t.Errorf("its task: got %v, want unreachable", f)
		}
		g.wantKinds("whom it asked read", g.events(b), "assigned", "cancel_requested")
		g.report(b, inner, core.Cancelled{})
		if got := inner.Answer().End; got != core.KindCancelled {
			t.Errorf("its request: got %s, want cancelled", got)
		}
	})
}

func TestAViewerThatUnwatchesGetsNoMoreEvents(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker, viewer := g.agent("a", able), g.connect("r"), g.connect("r")
		asked := g.ask(asker, "a")
		if err := viewer.Watch(asked, core.Cursor{}, "view"); err != nil {
			t.Fatal(err)
		}
		b, _ := g.batch(viewer)
		if b.Tag != "view" || b.Role != task.Viewer {
			t.Errorf("got the role %d and the tag %v, want a viewer's", b.Role, b.Tag)
		}
		g.wantKinds("the viewer read", b.Events, "opened", "assigned")
		g.report(agent, asked, core.Text{Text: "ready but not read"})
		viewer.Unwatch(asked)
		viewer.Unwatch(asked)
		g.report(agent, asked, core.Text{Text: "later"}, core.Done{})
		g.wantKinds("the viewer read then", g.events(viewer))
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "text", "text", "done")

		if err := viewer.Watch(asked, core.Cursor{Epoch: 1, Seq: 4}, nil); err != nil {
			t.Fatal(err)
		}
		g.wantKinds("the viewer read when it looked again", g.events(viewer), "done")
	})
}

func TestWatchingAllShowsRunningAndNewTasks(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker, operator := g.agent("a", able, two), g.connect("r"), g.operator("o")
		ended := g.ask(asker, "a")
		g.report(agent, ended, core.Done{})
		runs := g.ask(asker, "a")
		g.report(agent, runs, core.Text{Text: "before"})
		g.watchAll(operator)
		g.report(agent, runs, core.Text{Text: "after"}, core.Done{})
		fresh := g.ask(asker, "a")
		g.report(agent, fresh, core.Done{})
		_, err := asker.Open(core.Request{To: core.ToAgent("nobody"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("a request to an unknown agent", err, core.CodeUnknownAgent)

		got := map[*task.Task][]core.Event{}
		for _, b := range g.batches(operator) {
			got[b.Task] = append(got[b.Task], b.Events...)
			if b.Role != task.Viewer {
				t.Errorf("got the role %d, want a viewer's", b.Role)
			}
		}
		g.wantKinds("what had ended", got[ended])
		g.wantKinds("the running task", got[runs], "text", "done")
		g.wantKinds("the new task", got[fresh], "opened", "assigned", "done")
		delete(got, runs)
		delete(got, fresh)
		for task, events := range got {
			g.wantKinds("what was refused: "+string(task.ID()), events, "opened", "failed")
		}
		if len(got) != 1 {
			t.Errorf("got %d other tasks, want the refused one", len(got))
		}
		operator.Close(nil)
		g.report(agent, g.ask(asker, "a"), core.Done{})
	})
}

func TestNextEndsWithItsContext(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		s := g.connect("r")
		why := errors.New("the transport is gone")
		ctx, cancel := context.WithCancelCause(context.Background())
		done := make(chan error)
		go func() {
			_, err := s.Next(ctx)
			done <- err
		}()
		synctest.Wait()
		cancel(why)
		if err := <-done; err != why {
			t.Errorf("got %v, want %v", err, why)
		}
	})
}

func TestNextWakesForNewEvents(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		got := make(chan []core.Event)
		go func() {
			defer close(got)
			for {
				b, err := asker.Next(context.Background())
				if err != nil {
					return
				}
				got <- b.Events
			}
		}()
		task := g.ask(asker, "a")
		seen := core.Event{}
		for i := range 10 {
			g.report(agent, task, core.Text{Text: fmt.Sprint(i)})
			synctest.Wait()
			for _, e := range <-got {
				seen = e
			}
		}
		if seen.Seq < 10 {
			t.Errorf("got events up to %d, want a wake-up for every text", seen.Seq)
		}
		go asker.Close(nil)
		for range got {
		}
	})
}

func TestClosingAHubAgainDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{})}
		g.agent("a", able)
		asked := g.ask(g.connect("r"), "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		first := make(chan error)
		go func() { first <- g.hub.Close(ctx, "maintenance") }()
		synctest.Wait()
		if err := g.hub.Close(t.Context(), "again"); err != nil {
			t.Errorf("while it is closing: got %v, want no error", err)
		}
		g.wantState("while it is closing", task.Running, asked)
		if err := <-first; err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if err := g.hub.Close(t.Context(), "again"); err != nil {
			t.Errorf("when it is closed: got %v, want no error", err)
		}
		if f := asked.Answer().Fault; !strings.Contains(f.Message, "maintenance") {
			t.Errorf("got %v, want the first reason in it", f)
		}
	})
}

func TestAwaitingTheEndWakesForNothingElse(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", 0), g.connect("asker")
		for name, early := range map[string]bool{"before it": false, "after it": true} {
			asked, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Unwatched: true})
			if err != nil {
				t.Fatal(err)
			}
			if !early {
				asker.AwaitEnd(asked)
			}
			g.report(agent, asked, core.Text{Text: "x"})
			if b, ok := g.batch(asker); ok {
				t.Errorf("%s: got %+v before the end, want nothing", name, b)
			}
			g.report(agent, asked, core.Done{})
			if early {
				asker.AwaitEnd(asked)
			}
			if b, ok := g.batch(asker); !ok || b.Task != asked || b.Role != task.Requester || len(b.Events) > 0 {
				t.Errorf("%s: got %+v, want only the task", name, b)
			}
			if b, ok := g.batch(asker); ok {
				t.Errorf("%s: got %+v after the end, want nothing", name, b)
			}
		}
	})
}
