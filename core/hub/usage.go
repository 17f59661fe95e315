package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Usage returns the total usage, grouped by the given dimension. It returns a
// not_authorized Fault unless the principal is an operator, and an invalid Fault for an
// unknown dimension.
func (h *Hub) Usage(p core.Principal, by usage.By) ([]usage.Total, error) {
	var all []usage.Total
	err := h.list(p, core.ListUsage, func() (err error) {
		all, err = h.usage.Totals(by)
		return err
	})
	return all, err
}

// Budgets returns the present state of all budgets; none to a principal that may not list usage.
func (h *Hub) Budgets(p core.Principal) (all []usage.BudgetStatus) {
	_ = h.list(p, core.ListUsage, func() error {
		all = h.budgets.Status(time.Now())
		return nil
	})
	return all
}

// afford returns a budget Fault when the requester of a task, or its thread, has no tokens
// left. The budgets of agents are checked in routing.
func (h *Hub) afford(t *task.Task) error {
	if err := h.budgets.Check(usage.ByRequester, t.From().ID, time.Now); err != nil {
		return err
	}
	return h.budgets.Check(usage.ByThread, string(t.SharedThread()), time.Now)
}

// recoverUsage adds up what was spent before the start. It does not read the events of
// tasks, so that nothing counts twice.
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
