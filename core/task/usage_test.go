package task_test

import (
	"math"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestUsageIsCountedForTheAgentThatReportedIt(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	report(t, one, w, core.Usage{Input: -3, Output: math.MaxInt64})
	if _, err := one.Fail(w, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "busy")}, nil); err != nil {
		t.Fatal(err)
	}
	next := &worker{}
	one.Assign(task.Assignment{Worker: next, Agent: "eve"})
	report(t, one, next, core.Usage{Input: 2})
	if len(h.spent) != 2 || h.spent[0].Agent != "bob" || h.spent[1].Agent != "eve" || h.spent[1].Requester != "ann" || h.spent[1].Tokens.Input != 2 {
		t.Fatalf("got %+v, want one record of bob and one of eve", h.spent)
	}
	if got := h.spent[0].Tokens; got.Input != 0 || got.Output != 1<<40 {
		t.Errorf("impossible numbers of tokens: got %+v, want them bounded", got)
	}
	first := one.Events()[2]
	if again := one.UsageRecord(first, first.Body.(core.Usage)); again != h.spent[0] {
		t.Errorf("the record of the first: got %+v, want %+v", again, h.spent[0])
	}
}

func TestUsageAfterTheEndIsCounted(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	one.End(core.Cancelled{})
	for range 2 {
		wantFault(t, "usage after the end", one.Report(w, core.Usage{Input: 5}, nil), core.CodeConflict)
	}
	wantFault(t, "usage of another", one.Report(&worker{}, core.Usage{Input: 5}, nil), core.CodeConflict)
	last := one.Last()
	if len(h.spent) != 2 || h.spent[0].Seq <= last.Seq || h.spent[1].Seq <= h.spent[0].Seq {
		t.Errorf("got %+v, want two records with new sequence numbers", h.spent)
	}
	if got := h.counted("usage.late"); got != 2 {
		t.Errorf("usage.late: got %d, want 2", got)
	}
}

func TestABudgetWarningIsInjectedOnce(t *testing.T) {
	budgets := usage.NewBudgets([]usage.Budget{{By: usage.ByAgent, Key: usage.Everybody, Tokens: 100, Per: usage.Ever}})
	s, h, _ := newStore()
	one, w := run(s)
	for _, tokens := range []int64{50, 40, 5, 20} {
		h.near = budgets.Add(usage.Record{Agent: "bob", At: time.Now(), Tokens: core.Usage{Input: tokens}})
		report(t, one, w, core.Usage{Input: tokens})
	}
	wantKinds(t, one, "opened", "assigned", "usage", "usage", "injected", "usage", "usage")
	if len(h.crossed) != 2 || h.crossed[0].Spent() || !h.crossed[1].Spent() {
		t.Errorf("got %+v reported to the host, want one nearly spent and then spent", h.crossed)
	}

	plain := &worker{}
	other := open(s)
	other.Assign(task.Assignment{Worker: plain, Agent: "eve"})
	report(t, other, plain, core.Usage{Input: 1})
	wantKinds(t, other, "opened", "assigned", "usage")
}
