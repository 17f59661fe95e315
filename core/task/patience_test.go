package task_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// openDefault opens a task with a default deadline in a while, because of others.
func openDefault(t *testing.T, s *task.Store, in time.Duration, above ...*task.Task) *task.Task {
	t.Helper()
	req := core.Request{Intent: core.IntentAsk, To: core.ToAny(), Content: "why?", Deadline: time.Now().Add(in)}
	one := s.New(core.Principal{ID: "ann"}, policy.Chain{}, req, core.Trace{}, "")
	one.SetDefaultDeadline()
	one.SetAbove(above)
	if err := s.Open(one, nil); err != nil {
		t.Fatal(err)
	}
	return one
}

// patient are limits under which a silent agent has 10 minutes, and people an hour.
func patient() task.Limits {
	l := limits
	l.Silence, l.QuestionTimeout, l.MaxDeadline = 10*time.Minute, time.Hour, 7*day
	return l
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wantEnd fails unless the task has ended as timeout with the text in its message; "" for one that goes on.
func wantEnd(t *testing.T, what string, one *task.Task, text string) {
	t.Helper()
	f := one.Answer().Fault
	switch {
	case text == "" && one.State() == task.Ended:
		t.Fatalf("%s: got it ended with %v, want it to go on", what, f)
	case text != "" && (f == nil || f.Code != core.CodeTimeout || !strings.Contains(f.Message, text)):
		t.Fatalf("%s: got it %s with %v, want a timeout with %q", what, one.State(), f, text)
	}
}

func TestASilentAgentEndsATaskWithADefaultDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, _ := newStoreWith(patient())
		one := openDefault(t, s, 4*time.Hour)
		pass(25 * time.Minute)
		wantEnd(t, "while it is queued", one, "")
		w := assign(one)
		for range 5 {
			pass(9*time.Minute + 59*time.Second)
			report(t, one, w, core.Text{Text: "hm"})
		}
		pass(10*time.Minute - 1)
		wantEnd(t, "just before", one, "")
		pass(1)
		wantEnd(t, "then", one, "agent bob said nothing for 10m0s (limits.silence)")
		wantKinds(t, one, "opened", "assigned", "text", "text", "text", "text", "text", "cancel_requested", "failed")
		if len(h.ended) != 1 || one.Receipt().Stage != core.StageExpired {
			t.Errorf("got %d ends reported to the host and the receipt %s, want one and expired", len(h.ended), one.Receipt().Stage)
		}
	})
}

func TestADeadlineOfTheRequesterHoldsWhoeverIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStoreWith(patient())
		one := openRequest(s, core.Request{To: core.ToAny(), Deadline: time.Now().Add(30 * time.Minute)})
		w := assign(one)
		pass(20 * time.Minute)
		wantEnd(t, "a silent agent", one, "")
		report(t, one, w, core.ApprovalRequested{ID: "1", Name: "rm"})
		askPeople(t, one, w, "q")
		pass(10 * time.Minute)
		wantEnd(t, "at the deadline", one, "no answer by the deadline")
	})
}

func TestWaitingForPeopleMovesADefaultDeadlineAndIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStoreWith(patient())
		one := openDefault(t, s, 30*time.Minute)
		due := one.Due()
		w := assign(one)
		pass(5 * time.Minute)
		report(t, one, w, core.ApprovalRequested{ID: "1", Name: "rm"}, core.ApprovalRequested{ID: "2", Name: "rm"})
		pass(20 * time.Minute)
		askPeople(t, one, w, "q") // both at once count once
		pass(20 * time.Minute)
		wantEnd(t, "while people are asked", one, "")
		if err := one.Decide(core.ApprovalDecided{ID: "1", Approved: true, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		report(t, one, w, core.ToolState{ID: "2", State: core.ToolRunning}) // it does not wait any more
		pass(20 * time.Minute)
		one.Settle(core.QuestionAnswered{ID: "q", Answered: true})
		const waited = time.Hour
		if got := one.Due().Sub(due); got != waited || one.Deadline() != one.Due() {
			t.Errorf("after %s: got the deadline moved by %s, want as much", waited, got)
		}
		pass(9 * time.Minute)
		wantEnd(t, "the silence begins again", one, "")
		report(t, one, w, core.Text{Text: "so"})
		pass(9 * time.Minute)
		report(t, one, w, core.Text{Text: "what"})
		pass(7*time.Minute - 1)
		wantEnd(t, "just before the deadline", one, "")
		pass(1)
		wantEnd(t, "then", one, "no answer by the deadline")
	})
}

func TestADefaultDeadlineMovesNoFurtherThanTheMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := patient()
		l.MaxDeadline, l.Silence = 2*time.Hour, -1
		s, _, _ := newStoreWith(l)
		one := openDefault(t, s, time.Hour)
		w := assign(one)
		for range 3 {
			report(t, one, w, core.ApprovalRequested{ID: "1", Name: "rm"})
			pass(39 * time.Minute)
			report(t, one, w, core.ToolResult{ID: "1"})
		}
		report(t, one, w, core.ApprovalRequested{ID: "1", Name: "rm"})
		pass(3*time.Minute - 1)
		wantEnd(t, "just before", one, "")
		pass(1)
		wantEnd(t, "at the maximum", one, "no answer by the deadline")
	})
}

func TestTheMaximumTimeOfAnAgentCountsWaitingForPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStoreWith(patient())
		one := openDefault(t, s, 4*time.Hour)
		w := &worker{}
		one.Assign(task.Assignment{Worker: w, Agent: "bob", MaxTaskTime: 15 * time.Minute})
		report(t, one, w, core.ApprovalRequested{ID: "1", Name: "rm"})
		pass(15 * time.Minute)
		wantEnd(t, "then", one, "within the 15m0s that agent bob takes")
	})
}

func TestATaskWaitsWithThoseBelowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStoreWith(patient())
		first := openDefault(t, s, time.Hour)
		assign(first)
		second := openDefault(t, s, time.Hour, first)
		w := assign(second)
		for range 3 {
			pass(9 * time.Minute)
			report(t, second, w, core.Text{Text: "hm"})
		}
		report(t, second, w, core.ApprovalRequested{ID: "1", Name: "rm"})
		pass(50 * time.Minute)
		wantEnd(t, "while the task below asks people", first, "")
		if err := second.Conclude(w, time.Now(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
		pass(10*time.Minute - 1)
		wantEnd(t, "just before it was silent alone", first, "")
		pass(1)
		wantEnd(t, "then", first, "limits.silence")
	})
}
