package task

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// maxTokens is what one usage event counts at most of each sort of tokens, so that
// no agent brings a sum to overflow.
const maxTokens = 1 << 40

// UsageRecord is what a usage event of the task counts for. It is usage events alone
// that count: what an agent says in Done of the tokens it used repeats them, and a
// dialect that has no other word for them reports a usage event.
func (t *Task) UsageRecord(e core.Event, u core.Usage) usage.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.usageRecord(e, u)
}

// usageRecord is UsageRecord. Callers hold mu.
func (t *Task) usageRecord(e core.Event, u core.Usage) usage.Record {
	r := usage.Record{Task: t.id, Seq: e.Seq, At: e.At, Agent: t.agent, Requester: t.from.ID, Thread: t.SharedThread()}
	attempt := 0
	for x := range t.log.All() { // after a retry another agent has it
		if a, ok := x.Body.(core.Assigned); ok && x.Seq < e.Seq {
			r.Agent, attempt = a.Agent, attempt+1
		}
		if attempt == t.attempt || x.Seq >= e.Seq {
			break
		}
	}
	bound := func(n int64) int64 { return min(max(0, n), maxTokens) }
	r.Tokens = core.Usage{
		Input: bound(u.Input), Output: bound(u.Output), Thinking: bound(u.Thinking),
		CacheRead: bound(u.CacheRead), CacheWrite: bound(u.CacheWrite),
	}
	return r
}

// spend counts the usage event that was just appended, and returns the budgets that came
// to be nearly spent, or spent, by it. The agent of a task is warned once of each, where
// it takes injections; a task that runs is not cut. Callers hold mu.
func (t *Task) spend(u core.Usage) (crossed []usage.BudgetStatus) {
	near := t.store.host.Spend(t, t.usageRecord(t.log.Last(), u), false)
	for _, b := range near {
		t.warn(b)
	}
	return onlyCrossed(near)
}

func onlyCrossed(near []usage.BudgetStatus) []usage.BudgetStatus {
	return slices.DeleteFunc(near, func(b usage.BudgetStatus) bool { return !b.Crossed() })
}

// warn tells the agent that a budget is nearly spent. Callers hold mu.
func (t *Task) warn(b usage.BudgetStatus) {
	for _, told := range t.warned {
		if told.Same(b) {
			return
		}
	}
	if !t.worker.Features().Has(core.FeatureInjection) {
		return
	}
	t.warned = append(t.warned, b)
	t.append(core.Injected{ID: core.NewID(), Content: b.Warning(), Priority: core.InjectionImmediate, Source: "system"}, nil)
}

// spendLate is spend for what the agent of a task that has ended without it says that
// it spends on it. An agent that was cancelled, or was too slow, is known to go on.
// Callers hold mu.
func (t *Task) spendLate(u core.Usage) (crossed []usage.BudgetStatus) {
	t.late++
	last := t.log.Last()
	last.Seq, last.Merged, last.At = last.End()+t.late, nil, time.Now() // no event has the number
	t.store.host.Count("usage.late")
	return onlyCrossed(t.store.host.Spend(t, t.usageRecord(last, u), true))
}
