package task

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// maxTokens is the most that one usage event counts of each kind of tokens, so that no sum
// overflows.
const maxTokens = 1 << 40

// UsageRecord returns the record of a usage event of the task. Only usage events count: the
// tokens in Done repeat them, and a dialect that only has those reports a usage event.
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
	r.Cost = u.Cost
	return r
}

// spend counts the usage event that was just appended, and returns the budgets that it made
// nearly spent, or spent. It warns an agent that supports injections once of each; it does
// not end a running task. Callers hold mu.
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
	for _, w := range t.warned {
		if w.Same(b) {
			return
		}
	}
	if !t.worker.Features().Has(core.FeatureInjection) {
		return
	}
	t.warned = append(t.warned, b)
	t.append(core.Injected{ID: core.NewID(), Content: b.Warning(), Priority: core.InjectionImmediate, Source: "system"}, nil)
}

// spendLate is spend for an agent that continues to work on a task that has ended, as some
// do after a cancel or a timeout. Callers hold mu.
func (t *Task) spendLate(u core.Usage) (crossed []usage.BudgetStatus) {
	t.late++
	last := t.log.Last()
	last.Seq, last.Merged, last.At = last.End()+t.late, nil, time.Now() // no event has the number
	t.store.host.Count("usage.late")
	return onlyCrossed(t.store.host.Spend(t, t.usageRecord(last, u), true))
}
