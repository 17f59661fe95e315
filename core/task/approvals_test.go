package task_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

func TestAnApprovalIsDecidedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStore()
		one, w := run(s)
		wantFault(t, "what nobody asked for", one.Decide(core.ApprovalDecided{ID: "1", By: "ann"}), core.CodeInvalid)
		since := time.Now()
		report(t, one, w, core.ApprovalRequested{ID: "1", Name: "rm", Input: "-r"})
		got := one.Approvals()
		if len(got) != 1 || got[0].ID != "1" || got[0].Name != "rm" || got[0].Input != "-r" || got[0].Agent != "bob" ||
			got[0].From.ID != "ann" || !got[0].Since.Equal(since) || got[0].Until.Sub(since) != limits.QuestionTimeout {
			t.Errorf("pending: got %+v", got)
		}
		if err := one.Decide(core.ApprovalDecided{ID: "1", Approved: true, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		wantFault(t, "a second decision", one.Decide(core.ApprovalDecided{ID: "1", By: "eve"}), core.CodeConflict)
		wantKinds(t, one, "opened", "assigned", "approval_requested", "approval_decided")
		wantRead(t, "the agent", &w.inbox, "2 4")
		if left := one.Approvals(); len(left) > 0 {
			t.Errorf("pending: got %+v, want none", left)
		}
	})
}

func TestAnUndecidedApprovalIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStore()
		one, w := run(s)
		report(t, one, w, core.ApprovalRequested{ID: "1"})
		<-time.After(limits.QuestionTimeout)
		synctest.Wait()
		events := one.Events()
		if wantKinds(t, one, "opened", "assigned", "approval_requested", "approval_decided", "tool_state"); len(events) != 5 {
			return
		}
		if d := events[3].Body.(core.ApprovalDecided); d.Approved || d.By != "hub" {
			t.Errorf("got %+v, want a denial by the hub", d)
		}
		if s := events[4].Body.(core.ToolState); s.State != core.ToolDenied {
			t.Errorf("the tool: got %s, want %s", s.State, core.ToolDenied)
		}
		wantFault(t, "a decision afterwards", one.Decide(core.ApprovalDecided{ID: "1", Approved: true, By: "ann"}), core.CodeConflict)
	})
}

func TestAnApprovalOfAllCoversLaterRequests(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	report(t, one, w, core.ApprovalRequested{ID: "1"}, core.ApprovalRequested{ID: "2"})
	if err := one.Decide(core.ApprovalDecided{ID: "1", Approved: true, All: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	report(t, one, w, core.ApprovalRequested{ID: "3"})
	for _, i := range []int{4, 5, 7} {
		d, ok := one.Events()[i].Body.(core.ApprovalDecided)
		if !ok || !d.Approved || d.By != "ann" {
			t.Errorf("event %d: got %+v, want an approval by ann", i+1, one.Events()[i].Body)
		}
	}
}

func TestADenialOfAllDecidesNoOtherRequest(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	report(t, one, w, core.ApprovalRequested{ID: "1"}, core.ApprovalRequested{ID: "2"})
	if err := one.Decide(core.ApprovalDecided{ID: "1", All: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	report(t, one, w, core.ApprovalRequested{ID: "3"})
	var left []string
	for _, a := range one.Approvals() {
		left = append(left, a.ID)
	}
	slices.Sort(left)
	if want := []string{"2", "3"}; !slices.Equal(left, want) {
		t.Errorf("pending: got %q, want %q", left, want)
	}
}

func TestACallThatProceedsWithoutADecisionIsNoLongerPending(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	report(t, one, w, core.ApprovalRequested{ID: "1"}, core.ToolState{ID: "1", State: core.ToolRunning},
		core.ApprovalRequested{ID: "2"}, core.ToolResult{ID: "2"})
	if got := one.Approvals(); len(got) > 0 {
		t.Errorf("pending: got %+v, want none", got)
	}
	for _, id := range []string{"1", "2"} {
		wantFault(t, "deciding on "+id, one.Decide(core.ApprovalDecided{ID: id, By: "ann"}), core.CodeConflict)
	}
	if got := h.counted("approval.gone_on"); got != 2 {
		t.Errorf("approval.gone_on: got %d, want 2", got)
	}
}

func TestAnEndedTaskHasNoPendingApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStore()
		one, w := run(s)
		report(t, one, w, core.ApprovalRequested{ID: "1"})
		conclude(t, one, w, core.Done{})
		if got := one.Approvals(); len(got) > 0 {
			t.Errorf("pending: got %+v, want none", got)
		}
		wantFault(t, "a decision", one.Decide(core.ApprovalDecided{ID: "1", By: "ann"}), core.CodeConflict)
		<-time.After(2 * limits.QuestionTimeout)
		synctest.Wait()
		wantKinds(t, one, "opened", "assigned", "approval_requested", "tool_state", "done")
	})
}

func TestARepeatedApprovalRequestIsPendingAgain(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	for range 2 {
		report(t, one, w, core.ApprovalRequested{ID: "1"})
		if err := one.Decide(core.ApprovalDecided{ID: "1", By: "ann"}); err != nil {
			t.Errorf("got %v, want it decided", err)
		}
	}
}
