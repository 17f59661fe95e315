package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// asker joins an agent that may ask users.
func (g *testHub) asker(id string) *hub.Session { return g.agent(id, able, skilled("ui")) }

// viewer connects a session that shows a conversation.
func (g *testHub) viewer(id string, thread core.ThreadID, with core.AgentID) *hub.Session {
	s := g.connect(id)
	s.WatchQuestions(question.View{Tag: "sight of " + id, Thread: thread, Agent: with, For: core.Principal{ID: id}})
	return s
}

// nextQuestion reads the next question or outcome, which must be ready.
func (g *testHub) nextQuestion(s *hub.Session) *question.Update {
	g.t.Helper()
	for {
		b, ok := g.batch(s)
		if !ok {
			g.t.Fatal("got nothing, want a question")
		}
		if b.Question != nil {
			return b.Question
		}
	}
}

func (g *testHub) wantNoQuestion(what string, s *hub.Session) {
	g.t.Helper()
	for b, ok := g.batch(s); ok; b, ok = g.batch(s) {
		if b.Question != nil {
			g.t.Errorf("%s: got %+v, want no question", what, b.Question)
		}
	}
}

const whichDay = `{"question":"Which day?","options":[{"label":"Monday"},{"label":"Friday"}]}`

func TestAQuestionGoesToTheViewersOfItsConversationAndTheFirstAnswerCounts(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, ada := g.asker("a"), g.connect("ada")
		to, _ := core.ParseAddress("a")
		task := g.open(ada, core.Request{To: to, Thread: "trip"})
		here, too := g.viewer("ada", "trip", ""), g.viewer("ada", "trip", "a")
		elsewhere, stranger := g.viewer("ada", "work", "a"), g.viewer("bob", "trip", "a")
		a.CallTool("c1", "ask_user", []byte(whichDay))
		got := g.nextQuestion(here)
		want := question.Question{
			ID: got.Question.ID, Agent: "a", Tasks: []core.TaskID{task.ID()}, Text: "Which day?", Options: []core.Option{{Label: "Monday"}, {Label: "Friday"}},
			Since: got.Question.Since, Until: got.Question.Since.Add(24 * time.Hour),
		}
		if diff := cmp.Diff(want, got.Question); diff != "" || got.Tag != "sight of ada" {
			t.Errorf("got tag %v and (-want +got):\n%s", got.Tag, diff)
		}
		g.wantNoQuestion("another thread", elsewhere)
		g.wantNoQuestion("another principal", stranger)
		late := g.viewer("ada", "trip", "")
		if q := g.nextQuestion(late).Question; q.ID != want.ID {
			t.Errorf("a late viewer: got %s, want %s", q.ID, want.ID)
		}
		if all := g.hub.Questions(core.Principal{ID: "ada"}); len(all) != 1 || all[0].ID != want.ID {
			t.Errorf("got %v open, want the question", all)
		}
		if all := g.hub.Questions(core.Principal{ID: "bob"}); len(all) != 0 {
			t.Errorf("another principal: got %v open, want nothing", all)
		}
		_, err := stranger.AnswerQuestion(t.Context(), core.Reply{Question: want.ID, Selected: []string{"Friday"}})
		g.wantFault("an answer by another principal", err, core.CodeUnknownTask)
		for text, r := range map[string]core.Reply{
			"at least one selection or custom_text is required": {},
			"one selection is allowed":                          {Selected: []string{"Monday", "Friday"}},
			`"Sunday" is none of the options: Monday, Friday`:   {Selected: []string{"Sunday"}},
		} {
			r.Question = want.ID
			if _, err := here.AnswerQuestion(t.Context(), r); err == nil || core.AsFault(err).Message != text {
				t.Errorf("got %v, want %q", err, text)
			}
		}
		if _, err := too.AnswerQuestion(t.Context(), core.Reply{Question: want.ID, Selected: []string{"Friday"}}); err != nil {
			t.Fatalf("the first answer: got %v, want no error", err)
		}
		_, err = here.AnswerQuestion(t.Context(), core.Reply{Question: want.ID, Selected: []string{"Monday"}})
		g.wantFault("the second answer", err, core.CodeConflict)
		_, err = here.AnswerQuestion(t.Context(), core.Reply{Question: "q", Text: "x"})
		g.wantFault("no question", err, core.CodeUnknownTask)
		if out := outputOf[question.Outcome](g, g.tool(a)); !out.Answered || len(out.Selected) != 1 || out.Selected[0] != "Friday" {
			t.Errorf("got %+v, want Friday", out)
		}
		if end := g.nextQuestion(here).Outcome; end == nil || end.By.ID != "ada" || end.Selected[0] != "Friday" {
			t.Errorf("the other: got %+v, want the outcome", end)
		}
		g.report(a, task, core.Done{})
	})
}

func TestAQuestionWithoutViewersIsAnsweredAtOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.asker("a")
		g.viewer("bob", "trip", "b")
		a.CallTool("c1", "ask_user", []byte(whichDay))
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeUnsupported {
			t.Errorf("got %+v, want it unsupported", o)
		}
	})
}

func TestAQuestionWithoutViewersOfItsThreadGoesToThoseOfItsAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, ada := g.asker("a"), g.connect("ada")
		with := g.viewer("ada", "chat", "a")
		task := g.ask(ada, "a")
		a.CallTool("c1", "ask_user", []byte(whichDay))
		q := g.nextQuestion(with).Question
		late := g.viewer("ada", "another chat", "a")
		if got := g.nextQuestion(late).Question.ID; got != q.ID {
			t.Errorf("got %s, want %s", got, q.ID)
		}
		late.UnwatchQuestions("sight of ada")
		if _, err := with.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Dismissed: true}); err != nil {
			t.Fatal(err)
		}
		if out := outputOf[question.Outcome](g, g.tool(a)); out.Answered || out.Reason != "dismissed" {
			t.Errorf("got %+v, want it dismissed", out)
		}
		g.wantNoQuestion("a session that no longer views it", late)
		g.report(a, task, core.Done{})
	})
}

func TestAQuestionOfASubtaskGoesToTheViewersOfItsCause(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		first, second, ada := g.agent("first", able), g.asker("second"), g.connect("ada")
		to, _ := core.ParseAddress("first")
		task := g.open(ada, core.Request{To: to, Thread: "trip"})
		here := g.viewer("ada", "trip", "first")
		g.events(first)
		first.CallTool("c1", "agent_ask", []byte(`{"to":"second","content":"when?"}`))
		g.events(second)
		second.CallTool("c2", "ask_user", []byte(whichDay))
		if q := g.nextQuestion(here).Question; q.Agent != "second" {
			t.Errorf("got %+v, want the question of the second", q)
		}
		g.report(first, task, core.Done{})
	})
}

func TestAQuestionEndsWithItsTimeoutItsTaskOrItsAgent(t *testing.T) {
	for what, tt := range map[string]struct {
		end    func(*testHub, *hub.Session, *task.Task)
		reason string
	}{
		"its time":        {func(g *testHub, _ *hub.Session, _ *task.Task) { g.sleep(7 * time.Second) }, "timeout"},
		"its task":        {func(g *testHub, a *hub.Session, t *task.Task) { g.report(a, t, core.Done{}) }, "task_ended"},
		"its agent":       {func(_ *testHub, a *hub.Session, _ *task.Task) { a.Close(nil) }, ""},
		"the task's time": {func(g *testHub, _ *hub.Session, _ *task.Task) { g.sleep(5 * time.Second) }, "task_ended"},
	} {
		t.Run(what, func(t *testing.T) {
			withHub(t, hub.Limits{QuestionTimeout: 7 * time.Second}, func(g *testHub) {
				a, ada := g.asker("a"), g.connect("ada")
				to, _ := core.ParseAddress("a")
				request := core.Request{To: to, Thread: "trip"}
				if what == "the task's time" {
					request.Deadline = time.Now().Add(4 * time.Second)
				}
				task := g.open(ada, request)
				here := g.viewer("ada", "trip", "")
				a.CallTool("c1", "ask_user", []byte(whichDay))
				q := g.nextQuestion(here).Question
				tt.end(g, a, task)
				if all := g.hub.Questions(core.Principal{ID: "ada", Operator: true}); len(all) != 0 {
					t.Errorf("got %v open, want nothing", all)
				}
				if end := g.nextQuestion(here); end.Outcome == nil || end.Outcome.Answered {
					t.Errorf("got %+v, want the outcome", end)
				}
				if tt.reason != "" {
					if out := outputOf[question.Outcome](g, g.tool(a)); out.Answered || out.Reason != tt.reason {
						t.Errorf("got %+v, want no answer: %s", out, tt.reason)
					}
				}
				_, err := here.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Friday"}})
				g.wantFault("an answer after the end", err, core.CodeConflict)
			})
		})
	}
}

func TestQuestionsAreLimitedAndNeedTheCapability(t *testing.T) {
	withHub(t, hub.Limits{Questions: 2}, func(g *testHub) {
		a, b := g.asker("a"), g.agent("b", able)
		g.viewer("ada", "trip", "a")
		for i := range 3 {
			a.CallTool(fmt.Sprint(i), "ask_user", []byte(whichDay))
		}
		if o := g.tool(a); o.Call != "2" || o.Fault == nil || o.Fault.Code != core.CodeOverloaded {
			t.Errorf("the third: got %+v, want it refused", o)
		}
		if n := g.hub.Counters()["refused.question"]; n != 1 {
			t.Errorf("refused.question: got %d, want 1", n)
		}
		b.CallTool("c1", "ask_user", []byte(whichDay))
		if o := g.tool(b); o.Fault == nil || o.Fault.Code != core.CodeNotAuthorized {
			t.Errorf("without the capability: got %+v, want it refused", o)
		}
		if got, want := names(a.Tools()), ownTools+" ask_user"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := names(b.Tools()); got != ownTools {
			t.Errorf("without the capability: got %s, want %s", got, ownTools)
		}
		for input, want := range map[string]string{
			`{"options":[{"label":"a"}]}`:               "question: missing; say what is asked",
			`{"question":"?","options":[]}`:             "options: want at least one, or leave them out and the answer is a text",
			`{"question":"?","options":[{"label":""}]}`: "options: each wants a label",
			`{"question":"?","multi_select":true}`:      "multi_select: there are no options to select",
			`{"question":"?","timeout_seconds":301}`:    "timeout_seconds: want 1 to 300",
			`{"question":"?","timeout_seconds":0}`:      "timeout_seconds: want 1 to 300",
		} {
			a.CallTool("c1", "ask_user", []byte(input))
			if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeInvalid || o.Fault.Message != "invalid input: "+want {
				t.Errorf("%s: got %+v, want %q", input, o.Fault, want)
			}
		}
	})
}

func TestAQuestionWithoutOptionsIsAnsweredWithText(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, ada := g.asker("a"), g.viewer("ada", "trip", "a")
		a.CallTool("c1", "ask_user", []byte(`{"question":"Which day?"}`))
		q := g.nextQuestion(ada).Question
		const want = "the question has no options: answer in words of your own"
		if _, err := ada.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Friday"}}); err == nil || core.AsFault(err).Message != want {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := ada.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Text: "Friday"}); err != nil {
			t.Errorf("got %v, want it accepted", err)
		}
	})
}

func TestAQuestionEndsWithTheHub(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.asker("a")
		g.viewer("ada", "trip", "a")
		a.CallTool("c1", "ask_user", []byte(whichDay))
		if err := g.hub.Close(context.Background(), "over"); err != nil {
			t.Fatal(err)
		}
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeUnreachable {
			t.Errorf("got %+v, want the reason that the hub stopped", o)
		}
	})
}

func TestAClosedSessionGetsAndAsksNoQuestions(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, gone, ada := g.asker("a"), g.asker("gone"), g.viewer("ada", "trip", "gone")
		for _, s := range []*hub.Session{gone, ada} {
			s.Close(nil)
		}
		ada.WatchQuestions(question.View{Tag: "view of ada", Agent: "a", For: core.Principal{ID: "ada"}})
		a.CallTool("c1", "ask_user", []byte(whichDay))
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeUnsupported {
			t.Errorf("a question to a closed session: got %+v, want it unsupported", o)
		}
		bob := g.viewer("bob", "trip", "gone")
		gone.CallTool("c1", "ask_user", []byte(whichDay))
		if all := g.hub.Questions(core.Principal{ID: "bob"}); len(all) != 0 {
			t.Errorf("a question by a closed session: got %v open, want nothing", all)
		}
		if asked, end := g.nextQuestion(bob), g.nextQuestion(bob); asked.Outcome != nil || end.Outcome == nil || end.Outcome.Reason != "left" {
			t.Errorf("got %+v and %+v, want the question, and that its agent left", asked, end)
		}
	})
}

func TestAQuestionAndItsAnswerAreEventsOfItsTasks(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, ada := g.asker("a"), g.connect("ada")
		to, _ := core.ParseAddress("a")
		one := g.open(ada, core.Request{To: to, Thread: "trip"})
		here := g.viewer("ada", "trip", "a")
		a.CallTool("c1", "ask_user", []byte(whichDay))
		q := g.nextQuestion(here).Question
		if _, err := here.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Friday"}}); err != nil {
			t.Fatal(err)
		}
		g.nextQuestion(here) // how it ended
		a.CallTool("c2", "ask_user", []byte(whichDay))
		second := g.nextQuestion(here).Question
		g.sleep(24 * time.Hour)
		a.CallTool("c3", "ask_user", []byte(whichDay))
		g.report(a, one, core.Done{})
		events := one.Events()
		g.wantKinds("the task", events, "opened", "assigned", "question_asked", "question_answered", "question_asked", "question_answered", "question_asked", "question_answered", "done")
		want := []core.Body{
			core.QuestionAsked{ID: q.ID, Text: "Which day?", Options: []core.Option{{Label: "Monday"}, {Label: "Friday"}}, Until: q.Until},
			core.QuestionAnswered{ID: q.ID, Answered: true, Selected: []string{"Friday"}, By: "ada"},
			core.QuestionAsked{ID: second.ID, Text: "Which day?", Options: []core.Option{{Label: "Monday"}, {Label: "Friday"}}, Until: second.Until},
			core.QuestionAnswered{ID: second.ID, Reason: core.QuestionTimedOut},
		}
		for i, w := range want {
			if diff := cmp.Diff(w, events[2+i].Body); diff != "" {
				t.Errorf("event %d (-want +got):\n%s", 3+i, diff)
			}
		}
		if last := events[7].Body.(core.QuestionAnswered); last.Reason != core.QuestionTaskEnded {
			t.Errorf("the last question: got %+v, want one that ended with the task", last)
		}
	})
}

func TestAQuestionThatNobodyCanBeAskedIsSettledInItsTask(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, ada := g.asker("a"), g.connect("ada")
		one := g.ask(ada, "a")
		a.CallTool("c1", "ask_user", []byte(whichDay))
		g.report(a, one, core.Done{})
		events := one.Events()
		g.wantKinds("the task", events, "opened", "assigned", "question_asked", "question_answered", "done")
		if got := events[3].Body.(core.QuestionAnswered); got.Answered || got.Reason != string(core.CodeUnsupported) {
			t.Errorf("got %+v, want the reason unsupported", got)
		}
	})
}
