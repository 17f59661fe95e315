package hub_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// shownCall has an agent show a call in a task that it got, and call the tool.
func (g *testHub) shownCall(agent *hub.Session, call, name string) (ada *hub.Session, id core.TaskID) {
	g.t.Helper()
	ada = g.connect("ada")
	to, _ := core.ParseAddress(string(agent.AgentID()))
	task := g.open(ada, core.Request{To: to, Thread: "trip"})
	g.events(agent)
	g.report(agent, task, core.ToolCall{ID: call, Name: name, Input: "{}"})
	agent.CallTool(call, name, nil)
	return ada, task.ID()
}

// withdrawn reads the next batch of the pack, which must be a withdrawal.
func (g *testHub) withdrawn(pack *hub.Session, want string) {
	g.t.Helper()
	if b, ok := g.batch(pack); !ok || b.Withdrawn != want {
		g.t.Errorf("got %+v, want the execution withdrawn", b)
	}
}

func TestProgressOfAnExecutionIsTheStateOfItsToolCall(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p, q := g.agent("a", able), g.pack("p", packTool("x")), g.pack("q", packTool("y"))
		ada, _ := g.shownCall(a, "c1", "x")
		e := g.execution(p)
		g.events(ada)
		if err := p.ProgressTool(e.ID, "2/3"); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		got := g.events(ada)
		if len(got) != 1 || got[0].Body != core.Body(core.ToolState{ID: "c1", State: core.ToolRunning, Detail: "2/3"}) {
			t.Errorf("got %v, want the progress as a state of the tool", got)
		}
		g.wantFault("progress of another pack's execution", q.ProgressTool(e.ID, "3/3"), core.CodeNotAuthorized)
		g.answer(p, e.ID, "1")
		g.wantFault("progress after the answer", p.ProgressTool(e.ID, "3/3"), core.CodeConflict)
	})
}

func TestACallerThatWatchesGetsTheLatestProgressBeforeTheResult(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		p := g.pack("p", packTool("x"))
		ada, bob := g.connect("ada"), g.connect("bob")
		ada.WatchProgress()
		for _, caller := range []*hub.Session{ada, bob} {
			caller.CallTool("c1", "x", nil)
			e := g.execution(p)
			for _, detail := range []string{"1/3", "2/3", "3/3"} {
				if err := p.ProgressTool(e.ID, detail); err != nil {
					t.Errorf("got %v, want no error", err)
				}
			}
			g.answer(p, e.ID, "1")
		}
		if b, ok := g.batch(ada); !ok || b.Progress == nil || *b.Progress != (tool.Progress{Call: "c1", Detail: "3/3"}) {
			t.Errorf("got %+v, want the latest progress", b)
		}
		for name, caller := range map[string]*hub.Session{"ada": ada, "bob, who does not watch": bob} {
			if b, ok := g.batch(caller); !ok || b.Tool == nil || string(b.Tool.Output) != "1" {
				t.Errorf("%s: got %+v, want the result", name, b)
			}
		}
	})
}

func TestAPackAsksThePeopleOfTheTaskThatCalled(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able), g.pack("p", packTool("x"))
		ada, _ := g.shownCall(a, "c1", "x")
		e := g.execution(p)
		here, stranger := g.viewer("ada", "trip", "a"), g.viewer("bob", "trip", "a")
		got := make(chan question.Outcome, 1)
		go func() {
			o, err := p.AskCaller(g.t.Context(), e.ID, question.Question{Text: "Really?", Until: time.Now().Add(time.Minute)})
			if err != nil {
				t.Errorf("got %v, want an answer", err)
			}
			got <- o
		}()
		q := g.nextQuestion(here)
		if q.Question.Text != "x asks: Really?" || q.Question.Agent != "a" {
			t.Errorf("got %+v, want the question, as one of the agent that called", q.Question)
		}
		g.wantNoQuestion("a stranger", stranger)
		if _, err := ada.AnswerQuestion(t.Context(), core.Reply{Question: q.Question.ID, Text: "yes"}); err != nil {
			t.Error(err)
		}
		if o := <-got; o.Text != "yes" {
			t.Errorf("got %+v, want the answer", o)
		}
		g.answer(p, e.ID, "1")
		_, err := p.AskCaller(g.t.Context(), e.ID, question.Question{Text: "And now?"})
		g.wantFault("a question after the answer", err, core.CodeConflict)

		plain := g.connect("plain")
		plain.CallTool("c", "x", nil)
		_, err = p.AskCaller(g.t.Context(), g.execution(p).ID, question.Question{Text: "Who?"})
		g.wantFault("a question for a caller without a task", err, core.CodeUnsupported)

		plain.WatchOwnQuestions()
		plain.CallTool("c", "x", nil)
		go func() {
			o, err := p.AskCaller(g.t.Context(), g.execution(p).ID, question.Question{Text: "Who?"})
			if err != nil {
				g.t.Error(err)
			}
			got <- o
		}()
		q = g.nextQuestion(plain)
		g.wantNoQuestion("a stranger", stranger)
		if _, err := plain.AnswerQuestion(t.Context(), core.Reply{Question: q.Question.ID, Text: "me"}); err != nil {
			t.Error(err)
		}
		if o := <-got; o.Text != "me" {
			t.Errorf("got %+v, want the answer of a caller without a task that can be asked itself", o)
		}
	})
}

func TestACallThatNobodyWaitsForIsWithdrawn(t *testing.T) {
	for name, end := range map[string]func(g *testHub, ada, a *hub.Session, task core.TaskID){
		"its task is cancelled": func(g *testHub, ada, _ *hub.Session, task core.TaskID) {
			if err := ada.Cancel(task, "enough"); err != nil {
				g.t.Error(err)
			}
		},
		"its task has ended": func(g *testHub, _, a *hub.Session, task core.TaskID) {
			if err := a.Report(task, core.Done{Text: "done"}, nil); err != nil {
				g.t.Error(err)
			}
		},
		"it timed out":        func(g *testHub, _, _ *hub.Session, _ core.TaskID) { g.sleep(30 * time.Second) },
		"its caller has left": func(_ *testHub, _, a *hub.Session, _ core.TaskID) { a.Close(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, hub.Limits{}, func(g *testHub) {
				a, p := g.agent("a", able), g.pack("p", packTool("x"))
				ada, task := g.shownCall(a, "c1", "x")
				e := g.execution(p)
				end(g, ada, a, task)
				g.withdrawn(p, e.ID)
				if b, ok := g.batch(p); ok {
					t.Errorf("got %+v, want nothing more", b)
				}
			})
		})
	}
}

func TestTheCallsOfATaskThatIsCancelledAreAnsweredAndOthersGoOn(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.pack("p", packTool("x"))
		ada, task := g.shownCall(a, "c1", "x")
		g.shownCall(a, "c2", "x")
		first, second := g.execution(p), g.execution(p)
		if err := ada.Cancel(task, "enough"); err != nil {
			t.Fatal(err)
		}
		if o := g.tool(a); o.Call != "c1" || o.Fault == nil || o.Fault.Code != core.CodeCancelled {
			t.Errorf("got %+v, want the first call cancelled", o)
		}
		g.withdrawn(p, first.ID)
		g.answer(p, second.ID, "2")
		if o := g.tool(a); o.Call != "c2" || string(o.Output) != "2" {
			t.Errorf("got %+v, want the second call answered", o)
		}
		g.wantFault("an answer to the first", p.AnswerTool(first.ID, tool.Result{Output: json.RawMessage("1")}), core.CodeConflict)
	})
}

// anonymousCall has a part of the agent call a tool with an id that no task shows, as over MCP.
func (g *testHub) anonymousCall(agent *hub.Session, name string) {
	g.t.Helper()
	part := agent.Child()
	g.t.Cleanup(func() { part.Close(nil) })
	part.CallTool("", name, nil)
}

func TestAQuestionOfACallThatNoTaskShowsGoesToNobodyElse(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able, two, skilled("ui")), g.pack("p", packTool("x"))
		ada, bob := g.connect("ada"), g.connect("bob")
		to, _ := core.ParseAddress("a")
		hers := g.open(ada, core.Request{To: to, Thread: "hers"})
		g.anonymousCall(a, "x")
		early := g.execution(p)
		his := g.open(bob, core.Request{To: to, Thread: "his"})
		g.anonymousCall(a, "x")
		late := g.execution(p)
		here, there := g.viewer("ada", "hers", "a"), g.viewer("bob", "his", "a")

		ask := func(execution string) <-chan error {
			done := make(chan error, 1)
			go func() {
				_, err := p.AskCaller(g.t.Context(), execution, question.Question{Text: "Really?"})
				done <- err
			}()
			synctest.Wait()
			return done
		}
		g.wantFault("a call that may belong to both", <-ask(late.ID), core.CodeUnsupported)
		a.CallTool("q", "ask_user", []byte(whichDay))
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeUnsupported {
			t.Errorf("ask_user that may belong to both: got %+v, want it unsupported", o)
		}
		g.wantNoQuestion("ada", here)
		g.wantNoQuestion("bob", there)

		answered := ask(early.ID)
		q := g.nextQuestion(here).Question
		g.wantNoQuestion("whose task came after the call", there)
		if _, err := ada.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Text: "yes"}); err != nil {
			t.Error(err)
		}
		if err := <-answered; err != nil {
			t.Errorf("the call of before: got %v, want an answer", err)
		}
		g.report(a, hers, core.Done{})
		answered = ask(late.ID)
		if q := g.nextQuestion(there).Question; len(q.Tasks) != 1 || q.Tasks[0] != his.ID() {
			t.Errorf("got %+v, want the only task that is left", q)
		}
		g.report(a, his, core.Done{})
		<-answered
	})
}

func TestACallWhoseIDTwoTasksShowBelongsToNeitherAlone(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able, two), g.pack("p", packTool("x"))
		ada, first := g.shownCall(a, "call_1", "x")
		_, second := g.shownCall(a, "call_1", "x")
		here := g.viewer("ada", "trip", "a")
		for range 2 {
			_, err := p.AskCaller(g.t.Context(), g.execution(p).ID, question.Question{Text: "Really?"})
			g.wantFault("an id of two tasks", err, core.CodeUnsupported)
		}
		g.wantNoQuestion("ada", here)
		for _, id := range []core.TaskID{first, second} {
			if b, ok := g.batch(p); ok {
				t.Errorf("before the cancel of %s: got %+v, want both calls go on", id, b)
			}
			if err := ada.Cancel(id, "enough"); err != nil {
				t.Error(err)
			}
		}
		if b, ok := g.batch(p); !ok || b.Withdrawn == "" {
			t.Errorf("got %+v, want the calls withdrawn", b)
		}
	})
}

func TestACallThatNoTaskShowsIsWithdrawnWithTheLastTaskThatItMayBelongTo(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 3 }), g.pack("p", packTool("x"))
		ada := g.connect("ada")
		cancel := func(t *task.Task) {
			g.t.Helper()
			if err := ada.Cancel(t.ID(), "enough"); err != nil {
				g.t.Error(err)
			}
		}
		first := g.ask(ada, "a")
		g.anonymousCall(a, "x")
		one := g.execution(p)
		second := g.ask(ada, "a")
		g.anonymousCall(a, "x")
		both := g.execution(p)
		third := g.ask(ada, "a")
		cancel(first)
		g.withdrawn(p, one.ID)
		if b, ok := g.batch(p); ok {
			t.Errorf("got %+v, want the call go on that may belong to the second task", b)
		}
		cancel(second)
		g.withdrawn(p, both.ID)
		g.report(a, third, core.Done{})
	})
}

func TestAPackIsNotToldOfWhatItWasNotGiven(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able), g.pack("p", packTool("x"))
		ada, task := g.shownCall(a, "c1", "x")
		if err := ada.Cancel(task, "enough"); err != nil {
			t.Fatal(err)
		}
		if b, ok := g.batch(p); ok {
			t.Errorf("got %+v, want nothing", b)
		}
	})
}

func TestACallThatWaitsEndsWithTheContextOfItsCaller(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, p := g.agent("a", able), g.pack("p", packTool("x"))
		ctx, cancel := context.WithCancel(g.t.Context())
		g.call(ctx, a, "x", "{}")
		g.sleep(time.Millisecond)
		e := g.execution(p)
		cancel()
		g.sleep(time.Millisecond)
		g.withdrawn(p, e.ID)
	})
}

func TestAToolIsCheckedAlone(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		p := g.pack("p", packTool("x"))
		g.pack("q", packTool("taken"))
		for name, c := range map[string]struct {
			tool tool.Definition
			want core.Code
		}{
			"a name that cannot be": {packTool("a b"), core.CodeInvalid},
			"a name of another":     {packTool("taken"), core.CodeConflict},
			"a schema of strings":   {tool.Definition{Name: "y", InputSchema: []byte(`{"type":"string"}`)}, core.CodeInvalid},
		} {
			g.wantFault(name, p.CheckTool(c.tool), c.want)
		}
		for _, name := range []string{"x", "y"} {
			if err := p.CheckTool(packTool(name)); err != nil {
				t.Errorf("%s: got %v, want no error", name, err)
			}
		}
	})
}
