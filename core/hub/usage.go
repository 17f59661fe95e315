package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Usage returns what was used, added up along one line. It returns an invalid
// Fault for a line that there is not.
func (h *Hub) Usage(by usage.By) ([]usage.Total, error) { return h.usage.Totals(by) }

// Budgets returns how the limits on what may be spent stand now.
func (h *Hub) Budgets() []usage.BudgetStatus { return h.budgets.Status(time.Now()) }

// maxTokens is what one usage event counts at most of each sort of tokens, so that
// no agent brings a sum to overflow.
const maxTokens = 1 << 40

// spending is what a usage event of the task counts for. It is usage events alone
// that count: what an agent says in Done of the tokens it used repeats them, and a
// dialect that has no other word for them reports a usage event. Callers hold mu.
func (t *Task) spending(e core.Event, u core.Usage) usage.Record {
	s := usage.Record{Task: t.id, Seq: e.Seq, At: e.At, Agent: t.agent, Requester: t.from.ID, Thread: t.sharedThread()}
	attempt := 0
	for x := range t.log.all() { // after a retry another agent has it
		if a, ok := x.Body.(core.Assigned); ok && x.Seq < e.Seq {
			s.Agent, attempt = a.Agent, attempt+1
		}
		if attempt == t.attempt || x.Seq >= e.Seq {
			break
		}
	}
	bound := func(n int64) int64 { return min(max(0, n), maxTokens) }
	s.Tokens = core.Usage{
		Input: bound(u.Input), Output: bound(u.Output), Thinking: bound(u.Thinking),
		CacheRead: bound(u.CacheRead), CacheWrite: bound(u.CacheWrite),
	}
	return s
}

// sharedThread is the thread that the task shares with others: "" of a task on its
// own.
func (t *Task) sharedThread() core.ThreadID {
	if t.request.Thread == core.ThreadID(t.id) {
		return ""
	}
	return t.request.Thread
}

// spend counts the usage event that was just appended. The agent of a task is
// warned once of each budget that is nearly spent, where it takes injections; a task
// that runs is not cut. It returns the budgets that came to be nearly spent, or
// spent, by this event. Callers hold mu.
func (t *Task) spend(u core.Usage) (crossed []usage.BudgetStatus) {
	s := t.spending(t.log.last(), u)
	t.hub.usage.Add(s)
	for _, st := range t.hub.budgets.Add(s) {
		if st.Crossed() {
			crossed = append(crossed, st)
		}
		t.warn(st)
	}
	return crossed
}

// warn tells the agent that a budget is nearly spent. Callers hold mu.
func (t *Task) warn(st usage.BudgetStatus) {
	for _, told := range t.warned {
		if told.Same(st) {
			return
		}
	}
	if !t.worker.features().Has(core.FeatureInjection) {
		return
	}
	t.warned = append(t.warned, st)
	t.append(core.Injected{ID: core.NewID(), Content: st.Warning(), Priority: core.InjectionImmediate, Source: "system"}, nil)
}

// noteCrossed tells the operator of budgets that are nearly spent, or spent.
func (h *Hub) noteCrossed(crossed []usage.BudgetStatus) {
	for _, st := range crossed {
		what := "a budget is nearly spent"
		if st.Spent() {
			what = "a budget is spent: new tasks are refused"
		}
		h.log.Warn(what, string(st.By), st.Key, "used", st.Used, "tokens", st.Tokens, "per", string(st.Per))
	}
}

// afford returns a budget Fault when the requester of a task, or its thread, has
// no more tokens to use. Whether an agent has is asked of each that could have the
// task.
func (h *Hub) afford(t *Task) error {
	if err := h.budgets.Check(usage.ByRequester, t.from.ID, time.Now); err != nil {
		return err
	}
	return h.budgets.Check(usage.ByThread, string(t.sharedThread()), time.Now)
}

// recordUsage hands what is spent in records to the store. The recorder does it
// before it hands them to the journal, so that the usage of what is recorded is
// recorded too.
func (h *Hub) recordUsage(ctx context.Context, records []journal.Record) error {
	if h.usageStore == nil {
		return nil
	}
	var due []usage.Record
	for _, r := range records {
		u, ok := r.Event.Body.(core.Usage)
		if !ok {
			continue
		}
		h.mu.Lock()
		t := h.tasks[r.Task] // it stays until it is recorded
		h.mu.Unlock()
		t.mu.Lock()
		due = append(due, t.spending(r.Event, u))
		t.mu.Unlock()
	}
	if len(due) == 0 {
		return nil
	}
	return h.usageStore.Append(ctx, due...)
}

// recoverUsage adds up what was spent before the start. The events of tasks
// are not looked at again, so that nothing counts twice.
func (h *Hub) recoverUsage(ctx context.Context) error {
	if h.usageStore == nil {
		return nil
	}
	return h.usageStore.Replay(ctx, func(s usage.Record) bool {
		h.usage.Add(s)
		h.budgets.Add(s)
		return true
	})
}
