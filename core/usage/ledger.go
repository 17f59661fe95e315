package usage

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// By names what totals are grouped by.
type By string

// The groupings.
const (
	ByAgent     By = "agent"
	ByThread    By = "thread"
	ByRequester By = "requester"
	ByDay       By = "day"
	ByTask      By = "task"
)

// Total is what was used under one key of a grouping.
type Total struct {
	Key    string     `json:"key"`
	Tokens core.Usage `json:"tokens"`
	// Events is how many usage events the total is the sum of, and Unpriced how many of them have no cost: neither their
	// agent nor the prices of the hub tell it.
	Events   int64 `json:"events"`
	Unpriced int64 `json:"unpriced,omitempty"`
	// Cost is that of the others; unknown if there are none.
	Cost core.Money `json:"cost,omitzero"`
}

// add adds another total. What is in another currency counts as unpriced.
func (t *Total) add(o Total) {
	if t.Cost.Known() && o.Cost.Known() && t.Cost.Currency != o.Cost.Currency {
		o.Unpriced = o.Events
	}
	t.Tokens, t.Events, t.Unpriced, t.Cost = t.Tokens.Add(o.Tokens), t.Events+o.Events, t.Unpriced+o.Unpriced, t.Cost.Add(o.Cost)
}

// total returns the total of one record.
func (s Record) total() Total {
	t := Total{Tokens: s.Tokens, Events: 1, Cost: s.Cost}
	if !s.Cost.Known() {
		t.Unpriced = 1
	}
	return t
}

// Record is one usage event and the keys under which it counts, in a stable JSON form.
type Record struct {
	// Task and Seq identify the event, so that a repeated record is recognized.
	Task core.TaskID `json:"task"`
	Seq  uint64      `json:"seq"`
	// At is the time of the event, in milliseconds.
	At        time.Time    `json:"at"`
	Agent     core.AgentID `json:"agent"`
	Requester string       `json:"requester"`
	// Thread is "" for a task without a thread.
	Thread core.ThreadID `json:"thread,omitempty"`
	// Tokens has neither model nor cost.
	Tokens core.Usage `json:"tokens"`
	Cost   core.Money `json:"cost,omitzero"`
}

// key is the key of the record in a grouping.
func (s Record) key(by By) string {
	switch by {
	case ByAgent:
		return string(s.Agent)
	case ByThread:
		return string(s.Thread)
	case ByRequester:
		return s.Requester
	case ByTask:
		return string(s.Task)
	}
	return s.At.UTC().Format(time.DateOnly)
}

// MaxKeys is how many keys a grouping has. Beyond it, the total of the key whose last
// record is the oldest is added to OtherKey.
const (
	MaxKeys  = 10_000
	OtherKey = "(others)"
)

// Ledger adds up records. It is safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex
	groups map[By]*group
}

type group struct {
	keys   *lru.Cache[string, Total]
	others Total
}

// NewLedger returns an empty Ledger.
func NewLedger() *Ledger {
	l := &Ledger{groups: map[By]*group{}}
	for _, by := range []By{ByAgent, ByThread, ByRequester, ByDay, ByTask} {
		g := &group{others: Total{Key: OtherKey}}
		g.keys = lru.New(lru.Options[string, Total]{Count: MaxKeys, Evicted: func(_ string, t Total) { g.others.add(t) }})
		l.groups[by] = g
	}
	return l
}

// Add counts one record. Days are those of UTC.
func (l *Ledger) Add(s Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for by, g := range l.groups {
		key := s.key(by)
		t, _ := g.keys.Get(key)
		t.Key = key
		t.add(s.total())
		g.keys.Put(key, t)
	}
}

// Sum adds up totals of one grouping, such as those of several hubs, by key.
func Sum(all ...[]Total) []Total {
	sums := map[string]Total{}
	for _, totals := range all {
		for _, t := range totals {
			s := sums[t.Key]
			s.Key = t.Key
			s.add(t)
			sums[t.Key] = s
		}
	}
	return slices.SortedFunc(maps.Values(sums), byKey)
}

func byKey(a, b Total) int { return cmp.Compare(a.Key, b.Key) }

// Total returns the total of all records. Its key is "".
func (l *Ledger) Total() (sum Total) {
	l.mu.Lock()
	defer l.mu.Unlock()
	days := l.groups[ByDay]
	for _, t := range days.keys.All() {
		sum.add(t)
	}
	sum.add(days.others)
	return sum
}

// Totals returns the totals of a grouping, ordered by key. It returns an invalid Fault
// for an unknown grouping.
func (l *Ledger) Totals(by By) ([]Total, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[by]
	if g == nil {
		return nil, core.NewFault(core.CodeInvalid, "cannot group by %q: use agent, thread, requester, day or task", by)
	}
	out := make([]Total, 0, g.keys.Len()+1)
	for _, t := range g.keys.All() {
		out = append(out, t)
	}
	if g.others.Events > 0 {
		out = append(out, g.others)
	}
	slices.SortFunc(out, byKey)
	return out, nil
}
