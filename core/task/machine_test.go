package task_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// standing is where a task stands, as far as every hub that has its events knows it.
func standing(t *task.Task) string {
	var waiting string
	for _, a := range t.Approvals() {
		waiting += fmt.Sprintf(" %s(%s)", a.ID, a.Input)
	}
	return fmt.Sprintf("%s, of %q, output %v, cancelling %v, moved to %q, decisions wait:%s, last event %s %s",
		t.State(), t.Agent(), t.HasOutput(), t.IsCancelling(), t.Owner(), waiting, t.Cursor(), t.Last().Body.Kind())
}

// A step is something that happens to a task.
type step struct {
	what string
	id   string // of a tool call, or of a question
	yes  bool
	n    int
}

var steps = rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
	return step{
		what: rapid.SampledFrom([]string{
			"assign", "assign", "accept", "speak", "call", "proceed", "tell", "approval", "approval", "decide", "allow", "ask", "settle", "inject",
			"cancel", "fail", "conclude", "wait", "copy",
		}).Draw(rt, "what"),
		id: rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "id"), yes: rapid.Bool().Draw(rt, "yes"), n: rapid.IntRange(0, 90).Draw(rt, "n"),
	}
}), 0, 30)

// course is a task with a copy at another hub.
type course struct {
	one    *task.Task
	worker *worker
	copied *task.Task
	told   int // how many events the copy has
}

// do has a step happen, if it can in the state of the task.
func (c *course) do(s step) {
	say := func(b core.Body) { _ = c.one.Report(c.worker, b, nil) }
	switch s.what {
	case "assign":
		if c.one.State() == task.Queued {
			c.worker = assign(c.one)
		}
	case "accept":
		say(core.Accepted{})
	case "speak":
		say(core.Text{Text: "because"})
	case "call":
		say(core.ToolCall{ID: s.id, Name: "rm"})
	case "proceed":
		say(core.ToolState{ID: s.id, State: core.ToolRunning})
	case "tell":
		say(core.ToolResult{ID: s.id})
	case "approval":
		say(core.ApprovalRequested{ID: s.id, Name: "rm", Input: fmt.Sprint(s.n % 2)})
	case "decide":
		_ = c.one.Decide(core.ApprovalDecided{ID: s.id, By: "eve", Approved: s.yes})
	case "allow":
		_ = c.one.Decide(core.ApprovalDecided{ID: s.id, By: "eve", Approved: true, All: true})
	case "ask":
		_ = c.one.Ask(c.worker, core.QuestionAsked{ID: s.id, Text: "which?"})
	case "settle":
		c.one.Settle(core.QuestionAnswered{ID: s.id, By: "eve"})
	case "inject":
		_ = c.one.Inject(core.Injected{ID: "i", Content: "note"})
	case "cancel":
		_ = c.one.Cancel("ann", "enough")
	case "fail":
		_, _ = c.one.Fail(c.worker, core.Failed{Fault: &core.Fault{Code: core.CodeUnreachable, Retryable: s.yes}}, nil)
	case "conclude":
		_ = c.one.Conclude(c.worker, time.Now(), core.Done{}, nil)
	case "wait":
		time.Sleep(time.Duration(s.n) * time.Second)
	case "copy":
		c.tell(s.n)
	}
}

// tell tells the copy at most n of the events that it lacks.
func (c *course) tell(n int) {
	more := c.one.Events()[c.told:]
	more = more[:min(n, len(more))]
	c.copied.Extend(more)
	c.told += len(more)
}

// Whatever its requester, its agents, people and the clock do to a task, it has one end, which is its last event,
// and a copy that is told its events, in whatever pieces, stands where its owner does.
func TestACopyStandsWhereItsOwnerDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all, wrong := steps.Draw(rt, "steps"), ""
		synctest.Test(t, func(*testing.T) { wrong = contradiction(all) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// contradiction has steps happen, and returns what is wrong then.
func contradiction(all []step) string {
	owner, _, _ := newStore()
	other, _, _ := newStore()
	c := &course{one: openRequest(owner, core.Request{Intent: core.IntentAsk, To: core.ToAny(), Content: "why?", Deadline: time.Now().Add(10 * time.Minute)})}
	c.copied, c.told = other.Remote(c.one.ID(), c.one.Events()[0]), 1
	for _, s := range all {
		c.do(s)
		synctest.Wait()
	}
	c.tell(len(c.one.Events()))
	if got, want := standing(c.copied), standing(c.one); got != want {
		return fmt.Sprintf("the copy of %v stands\n got %s\nwant %s", kinds(c.one), got, want)
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	for i, e := range c.one.Events() {
		if last := i == len(c.one.Events())-1; e.Body.Kind().Ends() != last {
			return fmt.Sprintf("got the events %v, want one end, which is the last", kinds(c.one))
		}
	}
	return ""
}
