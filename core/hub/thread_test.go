package hub_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// talk opens a task in a thread and answers it.
func (g *testHub) talk(asker, agent *hub.Session, to, thread, content, answer string) *task.Task {
	g.t.Helper()
	task := g.open(asker, core.Request{To: core.ToAgent(core.AgentID(to)), Thread: core.ThreadID(thread), Content: content})
	g.report(agent, task, core.Text{Text: answer}, core.Done{})
	return task
}

func turns(all []core.Turn) string {
	var out []string
	for _, t := range all {
		out = append(out, t.Role.String()+": "+t.Text)
	}
	return strings.Join(out, " | ")
}

func TestAnAgentWithoutAMemoryGetsTheHistory(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		first := g.talk(asker, a, "a", "t", "one?", "1")
		g.talk(asker, b, "b", "t", "two?", "2")
		g.talk(asker, b, "b", "another", "else?", "no")
		third := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "t", Content: "three?"})
		got := third.Request().History
		if got, want := turns(got), "user: one? | assistant: 1 | user: two? | assistant: 2"; got != want {
			t.Errorf("got the history %q, want %q", got, want)
		}
		if got[1].Agent != "a" || got[3].Agent != "b" || got[0].Task != first.ID() || got[0].At.IsZero() || got[1].At.IsZero() {
			t.Errorf("got %+v, want the agent, the task and the time of each turn", got)
		}
		if got := first.Request().History; len(got) != 0 {
			t.Errorf("in a new thread: got the history %q, want none", turns(got))
		}
		g.report(a, third, core.Done{})
		if got, want := turns(g.hub.Turns(t.Context(), core.Principal{Operator: true}, "t")), "user: one? | assistant: 1 | user: two? | assistant: 2 | user: three? | assistant: "; got != want {
			t.Errorf("the thread: got %q, want %q", got, want)
		}
	})
}

func TestAnAgentWithSessionsGetsNoHistory(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able|core.FeatureSessions), g.connect("r")
		g.talk(asker, a, "a", "t", "one?", "1")
		if got := g.talk(asker, a, "a", "t", "two?", "2").Request().History; len(got) != 0 {
			t.Errorf("got the history %q, want none", turns(got))
		}
	})
}

func TestTheHistoryOfARequestIsBounded(t *testing.T) {
	withHub(t, hub.Limits{HistoryBytes: 1000}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		for range 10 {
			g.talk(asker, a, "a", "t", strings.Repeat("q", 100), strings.Repeat("a", 100))
		}
		got := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "t"}).Request().History
		size := 0
		for _, turn := range got {
			size += turn.Size()
		}
		if size > 1000 || len(got) < 4 {
			t.Errorf("got %d turns of %d bytes, want as many as fit into 1000", len(got), size)
		}
		if last := got[len(got)-1]; last.Role != core.RoleAssistant {
			t.Errorf("got a turn of the %s last, want the latest answer", last.Role)
		}
	})
}

func TestATaskWithoutAThreadStartsOne(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		one, other := g.talk(asker, a, "a", "", "one?", "1"), g.talk(asker, a, "a", "", "two?", "2")
		if got := one.Request().Thread; got == "" || got == other.Request().Thread {
			t.Errorf("got the threads %q and %q, want one each", got, other.Request().Thread)
		}
		if got := other.Request().History; len(got) != 0 {
			t.Errorf("got the history %q, want none", turns(got))
		}
		if opened := one.Events()[0].Body.(core.Opened); opened.Request.Thread != one.Request().Thread {
			t.Errorf("got the thread %q in the log, want %q", opened.Request.Thread, one.Request().Thread)
		}
		if got := turns(g.hub.Turns(t.Context(), core.Principal{Operator: true}, one.Request().Thread)); got != "user: one? | assistant: 1" {
			t.Errorf("its thread: got %q, want its two turns", got)
		}
	})
}

func TestAThreadHasOnlyAnsweredTurns(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able|core.FeatureNotices), g.connect("r")
		inT := core.Request{To: core.ToAgent("a"), Thread: "t"}
		failed, cancelled := g.open(asker, inT), g.open(asker, inT)
		g.report(a, failed, core.Text{Text: "half"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")})
		g.report(a, cancelled, core.Cancelled{})
		notice := inT
		notice.Intent, notice.Notice = core.IntentNotify, &core.Notice{Topic: "tea"}
		a.Delivered(g.open(asker, notice).ID())
		if got := g.hub.Turns(t.Context(), core.Principal{Operator: true}, "t"); got != nil {
			t.Errorf("got %q, want nothing", turns(got))
		}
	})
}

// atTheEnd is an observer of the ends of tasks.
type atTheEnd func()

func (atTheEnd) Joined(core.Card)             {}
func (atTheEnd) Left(core.AgentID, bool)      {}
func (atTheEnd) Recorded(core.TaskID, uint64) {}
func (f atTheEnd) Appended(_ core.TaskID, e core.Event) {
	if e.Body.Kind().Ends() {
		f()
	}
}

// A client may ask again as soon as it reads that a task is done: by then the turn is in the
// thread.
func TestAnAnswerIsInItsThreadOnceItsEndIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *testHub
		history := ""
		end := atTheEnd(func() { history = turns(g.hub.Turns(t.Context(), core.Principal{Operator: true}, "t")) }) // does not wait for a lock of the task
		h := hub.New(hub.Options{Observer: end})
		g = &testHub{t, h}
		defer func() {
			if err := h.Close(t.Context(), "over"); err != nil {
				t.Error(err)
			}
		}()
		a, asker := g.agent("a", able), g.connect("r")
		g.talk(asker, a, "a", "t", "one?", "1")
		if want := "user: one? | assistant: 1"; history != want {
			t.Errorf("at the end: got %q in the thread, want %q", history, want)
		}
		a.Close(nil)
		asker.Close(nil)
	})
}
