package task_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestTheLogHasEveryEventInOrderWithoutGaps(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	const chunks = 1000 // several segments of a log
	for range chunks {
		report(t, one, w, core.Text{Text: "x"})
	}
	conclude(t, one, w, core.Done{})
	events := one.Events()
	if len(events) != chunks+3 {
		t.Fatalf("got %d events, want %d: opened, assigned, the text and done", len(events), chunks+3)
	}
	for i, e := range events {
		if e.Seq != uint64(i+1) {
			t.Fatalf("event %d: got sequence %d, want %d", i, e.Seq, i+1)
		}
	}
	if got := len(h.appended[one.ID()]); got != len(events) {
		t.Errorf("got %d events reported to the host, want %d", got, len(events))
	}
	if got := one.Answer().Text; got != strings.Repeat("x", chunks) {
		t.Errorf("got an answer of %d bytes, want %d", len(got), chunks)
	}
	log := one.Log()
	i := log.Len()
	for e := range log.Backward() {
		if i--; e.Seq != events[i].Seq {
			t.Fatalf("backward: got %d at index %d, want %d", e.Seq, i, events[i].Seq)
		}
	}
	same := task.LogOf(events)
	if same.Len() != len(events) || same.At(500).Seq != 501 || same.Last().Seq != events[len(events)-1].Seq {
		t.Errorf("a log of the same events: got %d events and sequence %d at index 500", same.Len(), same.At(500).Seq)
	}
}

func TestATaskEndsOnceWithNoEventsAfterTheEnd(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	if one.HasEnded() || one.IsDone() || one.State() != task.Running {
		t.Fatalf("before the end: got the state %s", one.State())
	}
	conclude(t, one, w, core.Done{Text: "42"})
	wantFault(t, "a second end", one.Conclude(w, time.Now(), core.Cancelled{}, nil), core.CodeConflict)
	wantFault(t, "text after the end", one.Report(w, core.Text{Text: "late"}, nil), core.CodeConflict)
	_, err := one.Fail(w, core.Failed{Fault: core.NewFault(core.CodeInternal, "late")}, nil)
	wantFault(t, "a failure after the end", err, core.CodeConflict)
	wantFault(t, "a cancel after the end", one.Cancel("ann", ""), core.CodeConflict)
	wantFault(t, "context after the end", one.Inject(core.Injected{Content: "late"}), core.CodeConflict)
	if one.End(core.Cancelled{}) || one.Assign(task.Assignment{Worker: w, Agent: "bob"}) {
		t.Error("the hub ended or assigned a task that had ended")
	}
	if !one.HasEnded() || !one.IsDone() || one.State() != task.Ended {
		t.Errorf("after the end: got the state %s", one.State())
	}
	wantKinds(t, one, "opened", "assigned", "done")
	if got := h.counted("report.late"); got != 3 {
		t.Errorf("report.late: got %d, want 3", got)
	}
	if len(h.answered) != 1 {
		t.Errorf("got %d answers reported to the host, want 1", len(h.answered))
	}
}

func TestOnlyOneOfSeveralConcurrentEndsSucceeds(t *testing.T) {
	s, h, _ := newStore()
	for range 100 {
		one, w := run(s)
		var ends atomic.Int32
		var all sync.WaitGroup
		for _, end := range []func() bool{
			func() bool { return one.Conclude(w, time.Now(), core.Done{}, nil) == nil },
			func() bool { return one.Conclude(w, time.Now(), core.Cancelled{}, nil) == nil },
			func() bool { return one.End(core.Cancelled{}) },
			func() bool {
				_, err := one.Fail(w, core.Failed{Fault: core.NewFault(core.CodeInvalid, "no")}, nil)
				return err == nil
			},
		} {
			all.Go(func() {
				if end() {
					ends.Add(1)
				}
			})
		}
		all.Wait()
		if log := one.Log(); ends.Load() != 1 || log.Len() != 3 || !log.Last().Body.Kind().Ends() {
			t.Fatalf("got %d of four that succeeded and the log %q, want one end", ends.Load(), kinds(one))
		}
	}
	if len(h.ended) > 100 {
		t.Errorf("the host was told of %d ends by others than the agent, of 100 tasks", len(h.ended))
	}
}

func TestOnlyTheAssignedAgentReportsOnATask(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	other := &worker{}
	wantFault(t, "text of another", one.Report(other, core.Text{Text: "x"}, nil), core.CodeNotAuthorized)
	wantFault(t, "an end by another", one.Conclude(other, time.Now(), core.Done{}, nil), core.CodeNotAuthorized)
	if got := h.counted("report.not_held"); got != 2 {
		t.Errorf("report.not_held: got %d, want 2", got)
	}
	for _, b := range []core.Body{core.Opened{}, core.Assigned{}, core.ApprovalDecided{}, core.Injected{}, core.Retrying{}, core.CancelRequested{}} {
		wantFault(t, "an agent that says "+b.Kind().String(), one.Report(w, b, nil), core.CodeInvalid)
	}
	report(t, one, w, core.Text{}) // empty text is ignored
	wantKinds(t, one, "opened", "assigned")
}

func TestATaskWithTooMuchOutputFails(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	report(t, one, w, core.Text{Text: strings.Repeat("x", limits.TaskBytes)})
	wantFault(t, "more text", one.Report(w, core.Text{Text: "x"}, nil), core.CodeTooLarge)
	wantKinds(t, one, "opened", "assigned", "text", "failed")
	if len(h.ended) != 1 {
		t.Errorf("got %d ends reported to the host, want one", len(h.ended))
	}
}

func TestATaskFailsAtItsDeadlineAndItsAgentIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, _ := newStore()
		one := openRequest(s, core.Request{To: core.ToAny(), Deadline: time.Now().Add(time.Minute)})
		w := assign(one)
		report(t, one, w, core.ToolCall{ID: "1", Name: "ls"})
		<-time.After(time.Minute)
		synctest.Wait()
		wantKinds(t, one, "opened", "assigned", "tool_call", "tool_state", "cancel_requested", "failed")
		last := one.Last()
		if f, ok := last.Body.(core.Failed); !ok || f.Fault.Code != core.CodeTimeout {
			t.Errorf("got %+v, want it failed by a timeout", last.Body)
		}
		if got := one.Receipt().Stage; got != core.StageExpired {
			t.Errorf("receipt: got %s, want %s", got, core.StageExpired)
		}
		if len(h.ended) != 1 {
			t.Errorf("got %d ends reported to the host, want one", len(h.ended))
		}
		wantRead(t, "the agent", &w.inbox, "2 5 6 over")
	})
}

func TestAnAgentsTimeoutBelowTheDeadlineIsEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStore()
		one := open(s)
		one.Assign(task.Assignment{Worker: &worker{}, Agent: "bob", MaxTaskTime: time.Minute})
		if got := time.Until(one.Due()); got != time.Minute || !one.Deadline().After(one.Due()) {
			t.Errorf("due in %s, want a minute, before the deadline", got)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if f := one.Answer().Fault; f == nil || f.Code != core.CodeTimeout {
			t.Errorf("after a minute: got %v, want a timeout", f)
		}
	})
}

func TestACancelledTaskEndsWithItsAgentOrAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, _ := newStore()
		answers, ignores, deaf, queued := open(s), open(s), open(s), open(s)
		w := assign(answers)
		assign(ignores)
		deaf.Assign(task.Assignment{Worker: &worker{}, Agent: "eve"})
		for _, one := range []*task.Task{answers, ignores, deaf, queued} {
			for range 2 { // a second cancel changes nothing
				if err := one.Cancel("ann", "enough"); err != nil && !one.HasEnded() {
					t.Fatal(err)
				}
			}
		}
		wantKinds(t, deaf, "opened", "assigned", "cancel_requested", "cancelled")
		wantKinds(t, queued, "opened", "cancel_requested", "cancelled")
		conclude(t, answers, w, core.Done{})
		if <-time.After(limits.CancelGrace - time.Millisecond); ignores.HasEnded() {
			t.Error("ended before its grace was over")
		}
		<-time.After(time.Millisecond)
		synctest.Wait()
		wantKinds(t, ignores, "opened", "assigned", "cancel_requested", "cancelled")
		wantKinds(t, answers, "opened", "assigned", "cancel_requested", "done")
		if len(h.ignored) != 1 || h.ignored[0] != ignores.ID() {
			t.Errorf("unanswered cancels: got %v, want %s", h.ignored, ignores.ID())
		}
	})
}

func TestATaskIsReassignedUntilItHasOutput(t *testing.T) {
	overloaded := core.Failed{Fault: core.NewFault(core.CodeOverloaded, "busy")}
	s, _, _ := newStore()
	fail := func(one *task.Task, w task.Worker, want bool) {
		t.Helper()
		if again, err := one.Fail(w, overloaded, nil); err != nil || again != want {
			t.Errorf("got reassigned %v and error %v, want reassigned %v", again, err, want)
		}
	}
	one, w := run(s)
	for range limits.Retries {
		fail(one, w, true)
		wantFault(t, "who has it no longer", one.Report(w, core.Text{Text: "x"}, nil), core.CodeNotAuthorized)
		wantRead(t, "who has it no longer", &w.inbox, "")
		if one.State() != task.Queued {
			t.Fatalf("got the state %s, want queued", one.State())
		}
		w = assign(one)
	}
	fail(one, w, false)

	said, w := run(s)
	report(t, said, w, core.Text{Text: "I"})
	fail(said, w, false)

	byID := openRequest(s, core.Request{To: core.ToAgent("bob")})
	fail(byID, assign(byID), false)

	stopped, w := run(s)
	if err := stopped.Cancel("ann", ""); err != nil {
		t.Fatal(err)
	}
	fail(stopped, w, false)
	for _, ended := range []*task.Task{one, said, byID, stopped} {
		if last := ended.Last(); last.Body.Kind() != core.KindFailed {
			t.Errorf("got %s at the end, want failed", last.Body.Kind())
		}
	}
}

func TestAReceiptHasTheStageOfATask(t *testing.T) {
	s, _, _ := newStore()
	one := open(s)
	stage := func(want core.Stage) {
		t.Helper()
		if got := one.Receipt().Stage; got != want {
			t.Errorf("receipt: got %s, want %s", got, want)
		}
	}
	stage(core.StageAccepted)
	w := assign(one)
	one.Delivered(&worker{}) // of another
	stage(core.StageAccepted)
	one.Delivered(w)
	stage(core.StageDelivered)
	report(t, one, w, core.Accepted{})
	stage(core.StageAcknowledged)
	one.Delivered(w)
	stage(core.StageAcknowledged)

	nobodys := open(s)
	nobodys.Refuse(core.NewFault(core.CodeOverloaded, "full"))
	if r := nobodys.Receipt(); r.Stage != core.StageRefused || r.Fault == nil {
		t.Errorf("refused: got %+v", r)
	}
	wantKinds(t, nobodys, "opened", "failed")
}

func TestContextIsPushedToAnAgentThatTakesIt(t *testing.T) {
	s, h, _ := newStore()
	one := open(s)
	wantFault(t, "before it has an agent", one.Inject(core.Injected{Content: "x"}), core.CodeConflict)
	w := assign(one)
	if err := one.Inject(core.Injected{ID: "1", Content: "by the way"}); err != nil {
		t.Error(err)
	}
	wantFault(t, "too much", one.Inject(core.Injected{Content: strings.Repeat("x", limits.RequestBytes+1)}), core.CodeTooLarge)
	if one.InjectFor(&worker{}, core.Injected{Content: "x"}) || !one.InjectFor(w, core.Injected{Content: "x"}) {
		t.Error("InjectFor: want success only for the assigned worker")
	}
	wantRead(t, "the agent", &w.inbox, "2 3 4")

	other := open(s)
	other.Assign(task.Assignment{Worker: &worker{}, Agent: "eve"})
	wantFault(t, "an agent that takes none", other.Inject(core.Injected{Content: "x"}), core.CodeUnsupported)
	if h.counted("refused.injection") != 1 {
		t.Error("a refused injection was not counted")
	}
}

func TestAToolCallOfTheHubTimesOutWhileItIsOpen(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	report(t, one, w, core.ToolCall{ID: "1"}, core.ToolCall{ID: "2"}, core.ToolResult{ID: "2"})
	for _, id := range []string{"1", "1", "2", "3"} {
		one.TimeOutTool(id)
	}
	wantKinds(t, one, "opened", "assigned", "tool_call", "tool_call", "tool_result", "tool_state")
	if !one.HasToolCall("2") || one.HasToolCall("3") {
		t.Error("HasToolCall: want 2 and not 3")
	}
}

func TestEveryToolCallHasAnEndBeforeThatOfItsTask(t *testing.T) {
	for _, c := range []struct {
		name string
		said []core.Body
		end  core.Body
		want []core.ToolState
	}{
		{"the agent forgets it", []core.Body{core.ToolCall{ID: "1"}, core.ToolState{ID: "1", State: core.ToolRunning}}, core.Done{}, []core.ToolState{{ID: "1", State: core.ToolFailed, Detail: "the agent did not tell its result"}}},
		{"the agent fails", []core.Body{core.ToolCall{ID: "1"}, core.ToolCall{ID: "2"}, core.ToolResult{ID: "1"}}, core.Failed{Fault: core.NewFault(core.CodeInternal, "no")}, []core.ToolState{{ID: "2", State: core.ToolFailed, Detail: "the agent did not tell its result"}}},
		{"the task is cancelled", []core.Body{core.ToolCall{ID: "2"}, core.ToolCall{ID: "1"}}, core.Cancelled{}, []core.ToolState{{ID: "2", State: core.ToolCancelled}, {ID: "1", State: core.ToolCancelled}}},
		{"the agent has no time left", []core.Body{core.ToolCall{ID: "1"}}, core.Failed{Fault: core.NewFault(core.CodeTimeout, "late")}, []core.ToolState{{ID: "1", State: core.ToolTimeout, Detail: "the task timed out"}}},
		{"all have an end", []core.Body{core.ToolCall{ID: "1"}, core.ToolResult{ID: "1"}, core.ToolCall{ID: "2"}, core.ToolState{ID: "2", State: core.ToolDenied}}, core.Done{}, nil},
	} {
		s, _, _ := newStore()
		one, w := run(s)
		report(t, one, w, c.said...)
		if failed, is := c.end.(core.Failed); is {
			_, _ = one.Fail(w, failed, nil)
		} else if err := one.Conclude(w, time.Now(), c.end, nil); err != nil {
			t.Fatal(err)
		}
		var got []core.ToolState
		for _, e := range one.Events()[2+len(c.said):] {
			if s, is := e.Body.(core.ToolState); is {
				got = append(got, s)
			}
		}
		if !slices.Equal(got, c.want) || one.Last().Body.Kind() != c.end.Kind() {
			t.Errorf("%s: got %+v and then %s, want %+v and then %s", c.name, got, one.Last().Body.Kind(), c.want, c.end.Kind())
		}
	}
}

func TestADeniedToolCallEndsAsDenied(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	report(t, one, w, core.ToolCall{ID: "1"}, core.ApprovalRequested{ID: "1"})
	if err := one.Decide(core.ApprovalDecided{ID: "1", By: "ann", Reason: "not here"}); err != nil {
		t.Fatal(err)
	}
	if err := one.Conclude(w, time.Now(), core.Done{}, nil); err != nil {
		t.Fatal(err)
	}
	all := one.Events()
	if got, want := all[len(all)-2].Body, (core.ToolState{ID: "1", State: core.ToolDenied, Detail: "not here"}); got != want {
		t.Errorf("got %+v before the end, want %+v", got, want)
	}
}
