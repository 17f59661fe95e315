package hub

import (
	"context"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Usage returns the total usage at all hubs, grouped by the given dimension, and the hubs that are
// missing. It returns a not_authorized Fault unless the principal is an operator, and an invalid
// Fault for an unknown dimension. It may wait for the other hubs.
func (h *Hub) Usage(ctx context.Context, p core.Principal, by usage.By) (all []usage.Total, missing []string, err error) {
	err = h.list(p, core.ListUsage, func() error {
		own, err := h.usage.Totals(by)
		if err != nil {
			return err
		}
		answers, away := usageMethod.AskAll(ctx, h, p, by)
		_, _, gone := h.node.Names() // what their tasks have used is counted where it is stored
		all, missing = own, slices.Concat(away, gone)
		for _, a := range answers {
			all = usage.Sum(all, a.Out)
		}
		slices.Sort(missing)
		missing = slices.Compact(missing)
		return nil
	})
	return all, missing, err
}

// Spent returns the total usage of the tasks of this hub, as far back as it is kept.
func (h *Hub) Spent() usage.Total { return h.usage.Total() }

// Currency returns that of all costs.
func (h *Hub) Currency() string { return h.prices.Currency }

// usageMethod asks a hub for the totals of what its tasks have used.
const usageMethod rpc.Method[usage.By, []usage.Total] = "usage"

// Budgets returns the present state of all budgets, with what was used at other hubs; none to a
// principal that may not list usage.
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
		if r.Cost.Currency != h.prices.Currency { // which was another then
			r.Cost = core.Money{}
		}
		h.usage.Add(r)
		h.budgets.Add(r)
		return true
	})
}
