package hub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

func (g *testHub) wantTimeout(what string, t *task.Task, text string) {
	g.t.Helper()
	if f := t.Answer().Fault; f == nil || f.Code != core.CodeTimeout || !strings.Contains(f.Message, text) {
		g.t.Errorf("%s: got the task %s with %v, want a timeout with %q", what, t.State(), f, text)
	}
}

func TestASilentAgentEndsATaskUnlessItsRequesterSetADeadline(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 3 }), g.connect("r")
		strict := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "s"}, Dialect: "strict", Deadline: time.Hour, FixedDeadline: true})
		defer strict.Close(nil)
		byDefault, own, fixed := g.ask(asker, "a"), g.open(asker, core.Request{To: core.ToAgent("a"), Deadline: time.Now().Add(time.Hour)}), g.ask(strict, "a")
		g.sleep(10*time.Minute - 1)
		g.wantState("just before", task.Running, byDefault)
		g.sleep(1)
		g.wantTimeout("by default", byDefault, "agent a said nothing for 10m0s (limits.silence)")
		g.wantState("with a deadline of the requester or of the dialect", task.Running, own, fixed)
		for what, c := range map[string]struct {
			task *task.Task
			want bool
		}{"by default": {byDefault, true}, "the requester's": {own, false}, "the dialect's": {fixed, false}} {
			if got := c.task.Events()[0].Body.(core.Opened).DefaultDeadline; got != c.want {
				t.Errorf("%s: got default_deadline %t, want %t", what, got, c.want)
			}
		}
		g.report(a, own, core.Done{})
		g.report(a, fixed, core.Done{})
	})
}

func TestAQuestionMayWaitForADayWhateverTheDefaultDeadline(t *testing.T) {
	withHub(t, hub.Limits{Deadline: time.Hour}, func(g *testHub) {
		a, ada := g.asker("a"), g.connect("ada")
		asked := g.open(ada, core.Request{To: core.ToAgent("a"), Thread: "trip"})
		due := asked.Deadline()
		here := g.viewer("ada", "trip", "")
		a.CallTool("c1", "ask_user", []byte(whichDay))
		q := g.nextQuestion(here).Question
		if got := q.Until.Sub(q.Since); got != 24*time.Hour {
			t.Errorf("got a question that waits %s, want 24h", got)
		}
		g.sleep(23 * time.Hour)
		g.wantState("after 23 hours", task.Running, asked)
		if _, err := here.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Friday"}}); err != nil {
			t.Fatal(err)
		}
		if out := outputOf[question.Outcome](g, g.tool(a)); !out.Answered {
			t.Errorf("got %+v, want the answer", out)
		}
		if got := asked.Deadline().Sub(due); got != 23*time.Hour {
			t.Errorf("got the deadline moved by %s, want 23h", got)
		}
		g.sleep(10 * time.Minute)
		g.wantTimeout("ten minutes after the answer", asked, "limits.silence")
	})
}

func TestAnApprovalMayWaitForADayWhateverTheDefaultDeadline(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		asked := g.ask(asker, "a")
		g.report(a, asked, core.ToolCall{ID: "1", Name: "rm"}, core.ApprovalRequested{ID: "1", Name: "rm"})
		g.sleep(24*time.Hour - 1)
		if got := len(asked.Approvals()); got != 1 {
			t.Errorf("just before: got %d approvals, want one", got)
		}
		g.sleep(1)
		if last, ok := asked.Last().Body.(core.ToolState); !ok || last.State != core.ToolDenied || last.Detail != "nobody decided within 24h0m0s" {
			t.Errorf("after a day: got %+v, want it denied", asked.Last().Body)
		}
		g.report(a, asked, core.Done{})
	})
}

func TestAnAgentThatWaitsForAnotherIsNotSilent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		first, second, asker := g.agent("first", able), g.agent("second", able), g.connect("r")
		asked := g.ask(asker, "first")
		first.CallTool("c1", "agent_ask", []byte(`{"to":"second","content":"when?"}`))
		var below *task.Task
		for below == nil {
			b, ok := g.batch(second)
			if !ok {
				t.Fatal("the second agent got nothing, want a task")
			}
			below = b.Task
		}
		for range 3 {
			g.sleep(9 * time.Minute)
			g.report(second, below, core.Text{Text: "hm"})
		}
		g.wantState("while it waits", task.Running, asked, below)
		g.report(second, below, core.Done{})
		g.sleep(10 * time.Minute)
		g.wantTimeout("ten minutes after the answer", asked, "agent first said nothing")
	})
}

func TestAnAgentThatCannotBeStoppedKeepsItsSlotForAsLongAsItMayBeSilent(t *testing.T) {
	withHub(t, hub.Limits{Disconnect: hub.DisconnectNever}, func(g *testHub) {
		a, asker := g.agent("a", 0), g.connect("r")
		silent, waits := g.ask(asker, "a"), g.open(asker, core.Request{To: core.ToAgent("a"), Deadline: time.Now().Add(time.Hour)})
		g.sleep(10 * time.Minute)
		g.wantTimeout("the first", silent, "limits.silence")
		g.sleep(10*time.Minute + 4*time.Second)
		g.wantState("while its agent may still work", task.Queued, waits)
		g.sleep(time.Second)
		g.wantState("then", task.Running, waits)
		g.report(a, waits, core.Done{})
	})
}

func TestADefaultDeadlineIsNoLaterThanTheMaximum(t *testing.T) {
	withHub(t, hub.Limits{Deadline: 4 * time.Hour, MaxDeadline: time.Hour}, func(g *testHub) {
		a, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("r")
		byDefault := g.ask(asker, "a")
		named, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go", Deadline: time.Now().Add(4 * time.Hour)}, hub.OpenOptions{DefaultDeadline: true})
		if err != nil {
			t.Fatalf("a default of a dialect: got %v, want no error", err)
		}
		for _, one := range []*task.Task{byDefault, named} {
			if got := time.Until(one.Deadline()); got != time.Hour {
				t.Errorf("got a deadline in %s, want 1h", got)
			}
			g.report(a, one, core.Done{})
		}
		_, err = asker.Open(core.Request{To: core.ToAgent("a"), Content: "go", Deadline: time.Now().Add(4 * time.Hour)}, hub.OpenOptions{})
		g.wantFault("a deadline of the requester's own", err, core.CodeInvalid)
	})
}
