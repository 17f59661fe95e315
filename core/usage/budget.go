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

// Period says for how long a budget is.
type Period string

// The periods.
const (
	Daily Period = "day"   // of UTC
	Ever  Period = "total" // as far back as spendings are kept
)

// Everybody is the Key of a budget that each agent, thread or requester has for
// itself.
const Everybody = "*"

// Budget is a limit on tokens, as [core.Usage.Total] counts them: what a cache
// gave or took is free.
type Budget struct {
	// By is ByAgent, ByThread or ByRequester, and Key is which one.
	By  By
	Key string
	// Tokens is the limit: at it nothing new is taken in.
	Tokens int64
	Per    Period
}

// NearlySpent is the part of a budget, in percent, from which those who spend it
// are warned.
const NearlySpent = 80

// BudgetStatus is how much of a budget somebody has used.
type BudgetStatus struct {
	Budget
	// Key is whose it is, of a budget that everybody has too.
	Key  string
	Used int64
	// Resets is when it begins anew; zero for never.
	Resets time.Time
	// before is what had been used when the last spending came.
	before int64
}

// Percent is how much of it is used, rounded down.
func (s BudgetStatus) Percent() int64 { return int64(float64(s.Used) * 100 / float64(s.Tokens)) }

// Spent reports whether nothing is left.
func (s BudgetStatus) Spent() bool { return s.Used >= s.Tokens }

// Crossed reports whether it was the last spending that made it nearly spent, or
// spent.
func (s BudgetStatus) Crossed() bool {
	before := s
	before.Used = s.before
	return before.Percent() < NearlySpent || s.Spent() && !before.Spent()
}

// Same reports whether both are of one budget of one holder in one period.
func (s BudgetStatus) Same(o BudgetStatus) bool {
	return s.Budget == o.Budget && s.Key == o.Key && s.Resets.Equal(o.Resets)
}

// Warning is what those who spend the budget are told of it.
func (s BudgetStatus) Warning() string {
	return fmt.Sprintf("SYSTEM: Budget is %d%% consumed. %d tokens remaining. (%s)", s.Percent(), max(0, s.Tokens-s.Used), s.terms())
}

// Fault is the refusal of what would spend more than there is.
func (s BudgetStatus) Fault() *core.Fault {
	after := ""
	if s.Per == Daily {
		after = ": ask again then"
	}
	return core.NewFault(core.CodeBudget, "the budget is used up, with %d tokens: %s%s", s.Used, s.terms(), after)
}

// terms says what the limit is and when it begins anew.
func (s BudgetStatus) terms() string {
	if s.Per == Ever {
		return fmt.Sprintf("%s %q may use %d tokens in total, and only the operator can raise that", s.By, s.Key, s.Tokens)
	}
	return fmt.Sprintf("%s %q may use %d tokens a day, and the next day begins at %s", s.By, s.Key, s.Tokens, s.Resets.Format(time.RFC3339))
}

// Budgets holds spendings against limits. It is safe for concurrent use. Of a
// budget for everybody it remembers the [MaxKeys] who spent last.
type Budgets struct {
	limits []Budget
	mu     sync.Mutex
	used   []*lru.Cache[string, account] // for each of limits
}

// account is what one holder of a budget has used on a day; of a budget for ever
// the day is zero.
type account struct {
	day  time.Time
	used int64
}

// NewBudgets makes Budgets of which nothing is used.
func NewBudgets(limits []Budget) *Budgets {
	b := &Budgets{limits: slices.Clone(limits)}
	for range limits {
		b.used = append(b.used, lru.New(lru.Options[string, account]{Count: MaxKeys}))
	}
	return b
}

// Add counts a spending, and returns how the budgets stand that it counts for and
// that are nearly spent or spent.
func (b *Budgets) Add(s Record) []BudgetStatus {
	if len(b.limits) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var near []BudgetStatus
	for i, limit := range b.limits {
		key := s.key(limit.By)
		if !limit.of(key) {
			continue
		}
		a, _ := b.used[i].Get(key)
		switch day := limit.day(s.At); {
		case day.After(a.day):
			a = account{day: day}
		case day.Before(a.day):
			continue // that day is over
		}
		before := a.used
		if a.used += s.Tokens.Total(); a.used < before {
			a.used = math.MaxInt64
		}
		b.used[i].Put(key, a)
		st := limit.standing(key, a)
		st.before = before
		if st.Percent() >= NearlySpent {
			near = append(near, st)
		}
	}
	return near
}

// Check returns a budget Fault when an agent, thread or requester has no more
// tokens to use now. It asks what time it is only where there is a limit.
func (b *Budgets) Check(by By, key string, now func() time.Time) error {
	if len(b.limits) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, limit := range b.limits {
		if limit.By != by || !limit.of(key) {
			continue
		}
		a, ok := b.used[i].Get(key)
		if !ok || a.day.Before(limit.day(now())) {
			continue
		}
		if st := limit.standing(key, a); st.Spent() {
			return st.Fault()
		}
	}
	return nil
}

// of reports whether the limit is for the key. What has no key, such as a task on
// its own that has no thread, has no limit.
func (l Budget) of(key string) bool { return key != "" && (l.Key == Everybody || l.Key == key) }

// day is the day of UTC on which the time counts for the limit.
func (l Budget) day(at time.Time) time.Time {
	if l.Per == Ever {
		return time.Time{}
	}
	y, m, d := at.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

func (l Budget) standing(key string, a account) BudgetStatus {
	st := BudgetStatus{Budget: l, Key: key, Used: a.used}
	if l.Per != Ever {
		st.Resets = a.day.AddDate(0, 0, 1)
	}
	return st
}
