package hub_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// branch asks an agent in a conversation that branches from a task.
func (g *testHub) branch(asker *hub.Session, p core.Principal, from *task.Task, to, content string) *task.Task {
	g.t.Helper()
	b, err := g.hub.Branch(g.t.Context(), p, from.ID())
	if err != nil {
		g.t.Fatalf("branching from %s: got %v, want no error", from.ID(), err)
	}
	t, err := asker.Open(core.Request{To: core.ToAgent(core.AgentID(to)), Content: content}, hub.OpenOptions{Branch: b})
	if err != nil {
		g.t.Fatalf("opening a branch: got %v, want no error", err)
	}
	return t
}

// history checks the earlier turns that the agent of a task gets.
func (g *testHub) history(what string, t *task.Task, want string) {
	g.t.Helper()
	if got := turns(t.Request().History); got != want {
		g.t.Errorf("%s: got the history %q, want %q", what, got, want)
	}
}

var reader = core.Principal{ID: "r"}

func TestABranchBeginsWithTheTurnsUpToATask(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connectAs(reader)
		g.talk(asker, a, "a", "t", "one?", "1")
		second := g.talk(asker, a, "a", "t", "two?", "2")
		g.talk(asker, a, "a", "t", "three?", "3")

		const before = "user: one? | assistant: 1 | user: two? | assistant: 2"
		other := g.branch(asker, reader, second, "a", "and else?")
		thread := string(other.Request().Thread)
		g.history("the first request", other, before)
		if r := other.Events()[0].Body.(core.Opened).Request; r.Branch != second.ID() || turns(r.History) != before || thread == "t" {
			t.Errorf("got %+v opened, want a conversation of its own that says where it branched, with the turns", r)
		}
		also := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: core.ThreadID(thread), Content: "beside it"})
		g.history("while the first one runs", also, "")
		g.report(a, also, core.Cancelled{})
		g.report(a, other, core.Text{Text: "4"}, core.Done{})
		g.history("the second request", g.talk(asker, a, "a", thread, "and then?", "5"), before+" | user: and else? | assistant: 4")
		if got, want := turns(g.hub.Turns(t.Context(), reader, core.ThreadID(thread))), before+" | user: and else? | assistant: 4 | user: and then? | assistant: 5"; got != want {
			t.Errorf("the conversation: got %q, want %q", got, want)
		}
		g.history("the conversation that it branched from", g.talk(asker, a, "a", "t", "four?", "4"), before+" | user: three? | assistant: 3")
	})
}

// The turns come with the request as long as the conversation has none: an agent that comes to it later does not get them twice.
func TestTheTurnsOfABranchComeOnceAlsoToARequestThatWaited(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 1 }), g.connectAs(reader)
		first := g.talk(asker, a, "a", "t", "one?", "1")
		b, err := g.hub.Branch(t.Context(), reader, first.ID())
		if err != nil {
			t.Fatal(err)
		}
		open := func(content string) *task.Task {
			in, err := asker.Open(core.Request{To: core.ToAgent("a"), Thread: "fork", Content: content}, hub.OpenOptions{Branch: b})
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		running, waiting := open("two?"), open("three?")
		g.report(a, running, core.Text{Text: "2"}, core.Done{})
		g.history("the request that waited", waiting, "user: one? | assistant: 1 | user: two? | assistant: 2")
	})
}

func TestAgentsWithSessionsGetTheTurnsOfABranchOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able|core.FeatureSessions), g.agent("b", able|core.FeatureSessions), g.connectAs(reader)
		first := g.talk(asker, a, "a", "t", "one?", "1")
		other := g.branch(asker, reader, first, "b", "two?")
		thread := string(other.Request().Thread)
		g.history("the first request", other, "user: one? | assistant: 1")
		g.report(b, other, core.Text{Text: "2"}, core.Done{})
		g.history("the second request", g.talk(asker, b, "b", thread, "three?", "3"), "")
		back := g.talk(asker, a, "a", thread, "four?", "4")
		g.history("an agent that knows the other conversation alone", back, "user: one? | assistant: 1 | user: two? | assistant: 2 | user: three? | assistant: 3")
		if got, want := handover(back), "handed over from b with 6 turns"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		g.history("once it knows this one", g.talk(asker, a, "a", thread, "five?", "5"), "")
	})
}

func TestABranchIsThereAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := journal.NewMemory(journal.Retention{})
		before := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		a, asker := before.agent("a", able), before.connectAs(reader)
		alone := before.talk(asker, a, "a", "", "one?", "1")
		other := before.branch(asker, reader, alone, "a", "two?")
		before.report(a, other, core.Text{Text: "2"}, core.Done{})
		before.sleep(time.Second)

		after := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		if err := after.hub.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		a, asker = after.agent("a", able), after.connectAs(reader)
		next := after.open(asker, core.Request{To: core.ToAgent("a"), Thread: other.Thread(), Content: "three?"})
		after.sleep(time.Second)
		after.history("the branch", next, "user: one? | assistant: 1 | user: two? | assistant: 2")
		after.report(a, next, core.Text{Text: "3"}, core.Done{})
		after.history("another branch of a task that only the journal has", after.branch(asker, reader, alone, "a", "four?"), "user: one? | assistant: 1")
		after.history("a branch of the branch", after.branch(asker, reader, other, "a", "five?"), "user: one? | assistant: 1 | user: two? | assistant: 2")
	})
}

func TestABranchHasWhatItsRequesterMayRead(t *testing.T) {
	r, err := redact.New([]string{`sk-[a-z]{8}`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Redact: func() *redact.Redactor { return r }})}
		alice, op := core.Principal{ID: "alice", Authenticated: true}, core.Principal{ID: "op", Authenticated: true, Operator: true}
		a, hers, his, theirs := g.agent("a", able), g.connectAs(alice), g.connectAs(op), g.connectAs(core.Principal{ID: "eve", Authenticated: true})
		g.talk(theirs, a, "a", "t", "of eve", "x")
		own := g.talk(hers, a, "a", "t", "my sk-abcdefgh", "ok")
		g.history("the requester", g.branch(hers, alice, own, "a", "go"), "user: my sk-abcdefgh | assistant: ok")
		g.history("an operator", g.branch(his, op, own, "a", "go"), "user: of eve | assistant: x | user: my [redacted] | assistant: ok")
		_, err := g.hub.Branch(t.Context(), core.Principal{ID: "eve", Authenticated: true}, own.ID())
		g.wantFault("a task of somebody else", err, core.CodeUnknownTask)
		_, err = g.hub.Branch(t.Context(), op, "nothing")
		g.wantFault("no task", err, core.CodeUnknownTask)
		_, err = g.hub.Branch(t.Context(), alice, g.ask(hers, "a").ID())
		g.wantFault("a task that runs", err, core.CodeConflict)
		_, err = hers.Open(core.Request{To: core.ToAgent("a"), Content: "go", Branch: own.ID()}, hub.OpenOptions{})
		g.wantFault("a request that says itself that it branches", err, core.CodeInvalid)
	})
}

func TestABranchBeginsWithAsManyTurnsAsAgentsGet(t *testing.T) {
	withHub(t, hub.Limits{HistoryBytes: 1000}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connectAs(reader)
		var last *task.Task
		for range 10 {
			last = g.talk(asker, a, "a", "t", strings.Repeat("q", 100), strings.Repeat("a", 100))
		}
		got := g.branch(asker, reader, last, "a", "go").Request().History
		size := 0
		for _, turn := range got {
			size += turn.Size()
		}
		if size > 1000 || len(got) < 4 || got[len(got)-1].Task != last.ID() {
			t.Errorf("got %d turns of %d bytes, want the latest that fit into 1000", len(got), size)
		}
	})
}
