package usage

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Period is the time after which a budget starts over.
type Period string

// The periods.
const (
	Daily Period = "day"   // of UTC
	Ever  Period = "total" // as far back as records are kept
)

// Everybody is the Key of a budget that applies to each agent, thread or requester
// separately.
const Everybody = "*"

// Budget is a limit on tokens, as counted by [core.Usage.Total], where cache reads and writes are free; or on money.
type Budget struct {
	// By is ByAgent, ByThread or ByRequester, and Key the id of one, or Everybody.
	By  By
	Key string
	// Tokens is the limit, or Cost if that is known. Once it is reached, new tasks are refused. Usage without a cost
	// counts nothing of a cost.
	Tokens int64
	Cost   core.Money
	Per    Period
}

// NearlySpent is the percentage of a budget from which its holder is warned.
const NearlySpent = 80

// BudgetStatus is how much of a budget a holder has used.
type BudgetStatus struct {
	Budget
	// Key is the holder: an agent, thread or requester.
	Key string
	// Used is in tokens, or in billionths of the currency of Cost.
	Used int64
	// Resets is when the budget starts over; zero for never.
	Resets time.Time
	// before is Used without the last record.
	before int64
}

// Percent is how much of it is used, rounded down.
func (s BudgetStatus) Percent() int64 { return int64(float64(s.Used) * 100 / float64(s.limit())) }

// Spent reports whether nothing is left.
func (s BudgetStatus) Spent() bool { return s.Used >= s.limit() }

// Crossed reports whether the last record made the budget nearly spent, or spent.
func (s BudgetStatus) Crossed() bool {
	before := s
	before.Used = s.before
	return before.Percent() < NearlySpent || s.Spent() && !before.Spent()
}

// Same reports whether both describe the same budget, holder and period.
func (s BudgetStatus) Same(o BudgetStatus) bool {
	return s.Budget == o.Budget && s.Key == o.Key && s.Resets.Equal(o.Resets)
}

// Warning is the message to the holder of the budget.
func (s BudgetStatus) Warning() string {
	return fmt.Sprintf("SYSTEM: Budget is %d%% consumed. %s remaining. (%s)", s.Percent(), s.amount(max(0, s.limit()-s.Used)), s.terms())
}

// Fault is the refusal of a task when the budget is used up.
func (s BudgetStatus) Fault() *core.Fault {
	after := ""
	if s.Per == Daily {
		after = ": ask again then"
	}
	return core.NewFault(core.CodeBudget, "the budget is used up, with %s: %s%s", s.amount(s.Used), s.terms(), after)
}

// terms describes the limit and when it starts over.
func (s BudgetStatus) terms() string {
	if s.Per == Ever {
		return fmt.Sprintf("%s %q may use %s in total, and only the operator can raise that", s.By, s.Key, s.amount(s.limit()))
	}
	return fmt.Sprintf("%s %q may use %s a day, and the next day begins at %s", s.By, s.Key, s.amount(s.limit()), s.Resets.Format(time.RFC3339))
}

// limit returns the limit in what Used is in.
func (l Budget) limit() int64 {
	if l.Cost.Known() {
		return l.Cost.Nanos
	}
	return l.Tokens
}

// used returns what a record uses of the limit.
func (l Budget) used(r Record) int64 {
	switch {
	case !l.Cost.Known():
		return r.Tokens.Total()
	case r.Cost.Currency != l.Cost.Currency:
		return 0
	}
	return r.Cost.Nanos
}

// amount formats what was used of the limit, or may be.
func (l Budget) amount(n int64) string {
	if l.Cost.Known() {
		return core.Money{Nanos: n, Currency: l.Cost.Currency}.String()
	}
	return fmt.Sprintf("%d tokens", n)
}

// Budgets holds records against limits. It is safe for concurrent use. For a budget of
// Everybody it keeps the [MaxKeys] holders whose records came last.
type Budgets struct {
	limits []Budget
	mu     sync.Mutex
	purses map[int]purse // of the hubs by index; see accounts.go
}

// own is the index of this hub.
const own = -1

// purse has what was used of each of the limits at one hub.
type purse []*lru.Cache[string, account]

// account is what a holder has used on a day. Without a period the day is zero.
type account struct {
	day  time.Time
	used int64
}

// NewBudgets returns Budgets of which nothing is used.
func NewBudgets(limits []Budget) *Budgets {
	return &Budgets{limits: slices.Clone(limits), purses: map[int]purse{}}
}

// of returns the purse of a hub, which it adds if there is none. Callers hold mu.
func (b *Budgets) of(hub int) purse {
	p := b.purses[hub]
	if p == nil {
		for range b.limits {
			p = append(p, lru.New(lru.Options[string, account]{Count: MaxKeys}))
		}
		b.purses[hub] = p
	}
	return p
}

// Add counts a record and returns the status of each budget that it counts for and that
// is nearly spent or spent.
func (b *Budgets) Add(s Record) []BudgetStatus {
	if len(b.limits) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var near []BudgetStatus
	b.add(b.of(own), s, func(i int, key string, day time.Time, added int64) {
		st := b.limits[i].status(key, account{day, b.total(i, key, day)})
		st.before = st.Used - added
		if st.Percent() >= NearlySpent {
			near = append(near, st)
		}
	})
	return near
}

// add counts a record in a purse, and calls counted for each limit that it counts for. Callers hold
// mu.
func (b *Budgets) add(p purse, s Record, counted func(limit int, key string, day time.Time, added int64)) {
	for i, limit := range b.limits {
		key := s.key(limit.By)
		if !limit.appliesTo(key) {
			continue
		}
		a, _ := p[i].Get(key)
		switch day := limit.day(s.At); {
		case day.After(a.day):
			a = account{day: day}
		case day.Before(a.day):
			continue // that day is over
		}
		before := a.used
		a.used = sum(a.used, limit.used(s))
		p[i].Put(key, a)
		if counted != nil {
			counted(i, key, a.day, a.used-before)
		}
	}
}

// sum adds what was used. It does not overflow.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// total returns what a holder has used of a limit on a day at all hubs. Callers hold mu.
func (b *Budgets) total(limit int, key string, day time.Time) (used int64) {
	for _, p := range b.purses {
		if a, ok := p[limit].Get(key); ok && a.day.Equal(day) {
			used = sum(used, a.used)
		}
	}
	return used
}

// Check returns a budget Fault if an agent, thread or requester has used up a budget. It
// calls now only if there is a limit.
func (b *Budgets) Check(by By, key string, now func() time.Time) error {
	if len(b.limits) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, limit := range b.limits {
		if limit.By != by || !limit.appliesTo(key) {
			continue
		}
		today := limit.day(now())
		if st := limit.status(key, account{today, b.total(i, key, today)}); st.Spent() {
			return st.Fault()
		}
	}
	return nil
}

// appliesTo reports whether the limit applies to the key. An empty key, such as the thread of a
// task without one, has no limit.
func (l Budget) appliesTo(key string) bool { return key != "" && (l.Key == Everybody || l.Key == key) }

// day is the UTC day to which a time belongs; zero if the limit has no period.
func (l Budget) day(at time.Time) time.Time {
	if l.Per == Ever {
		return time.Time{}
	}
	y, m, d := at.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

func (l Budget) status(key string, a account) BudgetStatus {
	st := BudgetStatus{Budget: l, Key: key, Used: a.used}
	if l.Per != Ever {
		st.Resets = a.day.AddDate(0, 0, 1)
	}
	return st
}
