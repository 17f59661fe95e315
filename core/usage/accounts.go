package usage

import (
	"slices"
	"time"
)

// Account is what somebody has used of a budget at one hub, in a stable JSON form.
type Account struct {
	By  By     `json:"by"`
	Key string `json:"key"` // the holder
	// Day is the day, in UTC; zero for a budget without a period.
	Day  time.Time `json:"day,omitzero"`
	Used int64     `json:"used"`
	// Currency is that of Used in billionths; "" for tokens.
	Currency string `json:"currency,omitempty"`
}

// HasLimits reports whether there are any budgets.
func (b *Budgets) HasLimits() bool { return len(b.limits) > 0 }

// Accounts returns what was used at this hub.
func (b *Budgets) Accounts() []Account { return b.AccountsOf(own) }

// Others returns the other hubs of which something is known, in order.
func (b *Budgets) Others() (hubs []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for hub := range b.purses {
		if hub != own {
			hubs = append(hubs, hub)
		}
	}
	slices.Sort(hubs)
	return hubs
}

// AccountsOf returns what was used at another hub, as far as it is known.
func (b *Budgets) AccountsOf(hub int) (all []Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, used := range b.purses[hub] {
		for key, a := range used.All() {
			all = append(all, Account{b.limits[i].By, key, a.day, a.used, b.limits[i].Cost.Currency})
		}
	}
	return all
}

// AddOf counts a record of another hub.
func (b *Budgets) AddOf(hub int, r Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(b.of(hub), r, nil)
}

// Forget forgets what was used at another hub, which tells it anew.
func (b *Budgets) Forget(hub int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.purses, hub)
}

// Raise notes what was used at another hub at least.
func (b *Budgets) Raise(hub int, all []Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.of(hub)
	for _, told := range all {
		for i, limit := range b.limits {
			if limit.By != told.By || limit.Cost.Currency != told.Currency || !limit.appliesTo(told.Key) || (limit.Per == Ever) != told.Day.IsZero() {
				continue
			}
			a, _ := p[i].Get(told.Key)
			if told.Day.After(a.day) || told.Day.Equal(a.day) && told.Used > a.used {
				p[i].Put(told.Key, account{told.Day, told.Used})
			}
		}
	}
}
