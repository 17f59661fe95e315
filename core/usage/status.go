package usage

import (
	"cmp"
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
		for key, a := range b.used[i].All() {
			if a.day.Equal(today.day) {
				holders = append(holders, limit.status(key, a))
			}
		}
		if len(holders) == 0 && limit.Key != Everybody {
			holders = append(holders, limit.status(limit.Key, today))
		}
		slices.SortFunc(holders, func(a, b BudgetStatus) int { return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(a.Key, b.Key)) })
		all = append(all, holders...)
	}
	return all
}
