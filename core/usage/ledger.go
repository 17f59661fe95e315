package usage

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// By says along which line totals are added up.
type By string

// The lines.
const (
	ByAgent     By = "agent"
	ByThread    By = "thread"
	ByRequester By = "requester"
	ByDay       By = "day"
)

// Total is what was used under one key.
type Total struct {
	Key    string     `json:"key"`
	Tokens core.Usage `json:"tokens"`
	// Events is how many usage events it is the sum of.
	Events int64 `json:"events"`
}

// Spending is one usage event with what it counts for.
type Spending struct {
	Agent     core.AgentID
	Thread    core.ThreadID
	Requester string
	At        time.Time
	Tokens    core.Usage
}

// Ledger adds up. It is safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex
	totals map[By]map[string]*Total
}

// MaxKeys is how many keys a line has before what is new is added up under
// OtherKey.
const (
	MaxKeys  = 10_000
	OtherKey = "(others)"
)

// NewLedger makes an empty Ledger.
func NewLedger() *Ledger {
	return &Ledger{totals: map[By]map[string]*Total{ByAgent: {}, ByThread: {}, ByRequester: {}, ByDay: {}}}
}

// Add counts one event. Days are those of UTC.
func (l *Ledger) Add(s Spending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for by, key := range map[By]string{
		ByAgent: string(s.Agent), ByThread: string(s.Thread), ByRequester: s.Requester,
		ByDay: s.At.UTC().Format(time.DateOnly),
	} {
		t := l.totals[by][key]
		if t == nil && len(l.totals[by]) >= MaxKeys {
			key = OtherKey
			t = l.totals[by][key]
		}
		if t == nil {
			t = &Total{Key: key}
			l.totals[by][key] = t
		}
		t.Tokens, t.Events = t.Tokens.Add(s.Tokens), t.Events+1
	}
}

// Totals returns the totals along one line, by key. It returns an invalid Fault
// for a line that there is not.
func (l *Ledger) Totals(by By) ([]Total, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	byKey, ok := l.totals[by]
	if !ok {
		return nil, core.NewFault(core.CodeInvalid, "cannot add up by %q: use agent, thread, requester or day", by)
	}
	out := make([]Total, 0, len(byKey))
	for _, t := range byKey {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Total) int { return cmp.Compare(a.Key, b.Key) })
	return out, nil
}
