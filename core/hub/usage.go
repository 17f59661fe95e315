package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Usage returns what was used, added up along one line. It tells of everybody, so that
// it is for operators: others get a not_authorized Fault. It returns an invalid Fault
// for a line that there is not.
func (h *Hub) Usage(p core.Principal, by usage.By) ([]usage.Total, error) {
	var all []usage.Total
	err := h.list(p, core.ListUsage, func() (err error) {
		all, err = h.usage.Totals(by)
		return err
	})
	return all, err
}

// Budgets returns how the limits on what may be spent stand now.
func (h *Hub) Budgets() []usage.BudgetStatus { return h.budgets.Status(time.Now()) }

// afford returns a budget Fault when the requester of a task, or its thread, has
// no more tokens to use. Whether an agent has is asked of each that could have the
// task.
func (h *Hub) afford(t *task.Task) error {
	if err := h.budgets.Check(usage.ByRequester, t.From().ID, time.Now); err != nil {
		return err
	}
	return h.budgets.Check(usage.ByThread, string(t.SharedThread()), time.Now)
}

// recoverUsage adds up what was spent before the start. The events of tasks
// are not looked at again, so that nothing counts twice.
func (h *Hub) recoverUsage(ctx context.Context) error {
	if h.usageStore == nil {
		return nil
	}
	return h.usageStore.Replay(ctx, func(r usage.Record) bool {
		h.usage.Add(r)
		h.budgets.Add(r)
		return true
	})
}
