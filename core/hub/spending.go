package hub

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Budgets hold over all hubs: each tells the others what its tasks spend, and one that comes up what
// was spent before. What a hub that is gone has spent counts on, and the others tell it whoever has
// not heard it, until it is back and tells it itself.

// spending tells other hubs what the tasks of this one spend. Its lock is taken after those of the
// hub and of tasks.
type spending struct {
	mu   sync.Mutex
	told map[string]bool // the hubs that are up; false for one that has to be told everything
}

// spent is news of what was used at a hub.
type spent struct {
	// Hub is the index of that hub.
	Hub int `json:"hub"`
	// Record is one more record.
	Record *usage.Record `json:"record,omitempty"`
	// Begins says that what was told before is forgotten.
	Begins bool `json:"begins,omitempty"`
	// Accounts are a part of what was used before.
	Accounts []usage.Account `json:"accounts,omitempty"`
}

const spentNews rpc.News[spent] = "spent"

// Priced implements [task.Host].
func (h host) Priced(u core.Usage) core.Usage { return h.prices.Priced(u) }

// Spend implements [task.Host].
func (h host) Spend(t *task.Task, r usage.Record, late bool) []usage.BudgetStatus {
	h.usage.Add(r)
	if late {
		h.recorder.SpentLate(t, r)
	}
	if h.remote == nil || !h.budgets.HasLimits() {
		return h.budgets.Add(r)
	}
	h.spending.mu.Lock()
	defer h.spending.mu.Unlock()
	near := h.budgets.Add(r)
	for name, knows := range h.spending.told {
		if knows {
			h.spending.told[name] = spentNews.Tell(h, name, spent{Hub: h.node.Index(), Record: &r}) == nil
		} else {
			h.spending.told[name] = h.tellAccounts(name, h.node.Index(), h.budgets.Accounts(), true)
		}
	}
	return near
}

// tellSpent tells a hub that has come up what was used at this one, and at those that are gone.
// Callers hold mu.
func (h *Hub) tellSpent(name string) {
	if !h.budgets.HasLimits() {
		return
	}
	h.spending.mu.Lock()
	defer h.spending.mu.Unlock()
	if h.spending.told == nil {
		h.spending.told = map[string]bool{}
	}
	h.spending.told[name] = h.tellAccounts(name, h.node.Index(), h.budgets.Accounts(), true)
	for _, index := range h.budgets.Others() {
		if _, up := h.node.At(index); !up {
			h.tellAccounts(name, index, h.budgets.AccountsOf(index), false)
		}
	}
}

// untellSpent tells a hub that is gone nothing more.
func (h *Hub) untellSpent(name string) {
	h.spending.mu.Lock()
	defer h.spending.mu.Unlock()
	delete(h.spending.told, name)
}

// spentAtOnce is how many accounts are told at once.
const spentAtOnce = 1000

// tellAccounts tells a hub what was used at one with an index. It reports whether it could.
func (h *Hub) tellAccounts(name string, index int, all []usage.Account, begins bool) bool {
	if len(all) == 0 && begins {
		return spentNews.Tell(h, name, spent{Hub: index, Begins: true}) == nil
	}
	for part := range slices.Chunk(all, spentAtOnce) {
		if spentNews.Tell(h, name, spent{Hub: index, Begins: begins, Accounts: part}) != nil {
			return false
		}
		begins = false
	}
	return true
}

// toldSpent notes what was used at another hub. Each knows best what was used at itself.
func (h *Hub) toldSpent(from string, s spent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	its := h.node.State(from).Index == s.Hub
	switch _, up := h.node.At(s.Hub); {
	case s.Hub == h.node.Index() || !its && up:
		return
	case s.Record != nil:
		h.budgets.AddOf(s.Hub, *s.Record)
		return
	case s.Begins && its:
		h.budgets.Forget(s.Hub)
	}
	h.budgets.Raise(s.Hub, s.Accounts)
}
