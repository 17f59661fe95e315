package usage

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Status returns the status of every budget, in the order of the limits. A budget of
// Everybody has one for each holder that has used it, the largest first.
func (b *Budgets) Status(now time.Time) []BudgetStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []BudgetStatus{}
	for i, limit := range b.limits {
		today := account{day: limit.day(now)}
		var holders []BudgetStatus
		for _, key := range b.holders(i, today.day) {
			holders = append(holders, limit.status(key, account{today.day, b.total(i, key, today.day)}))
		}
		if len(holders) == 0 && limit.Key != Everybody {
			holders = append(holders, limit.status(limit.Key, today))
		}
		slices.SortFunc(holders, func(a, b BudgetStatus) int { return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(a.Key, b.Key)) })
		all = append(all, holders...)
	}
	return all
}

// holders returns who has used a budget on a day, at any hub. Callers hold mu.
func (b *Budgets) holders(limit int, day time.Time) []string {
	known := map[string]bool{}
	for _, p := range b.purses {
		for key, a := range p[limit].All() {
			if a.day.Equal(day) {
				known[key] = true
			}
		}
	}
	return slices.Collect(maps.Keys(known))
}
