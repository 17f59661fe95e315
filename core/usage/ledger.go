package usage

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// By says along which line totals are added up.
type By string

// The lines.
const (
	ByAgent     By = "agent"
	ByThread    By = "thread"
	ByRequester By = "requester"
	ByDay       By = "day"
	ByTask      By = "task"
)

// Total is what was used under one key.
type Total struct {
	Key    string     `json:"key"`
	Tokens core.Usage `json:"tokens"`
	// Events is how many usage events it is the sum of.
	Events int64 `json:"events"`
}

func (t *Total) add(tokens core.Usage, events int64) {
	t.Tokens, t.Events = t.Tokens.Add(tokens), t.Events+events
}

// Record is one usage event with what it counts for.
type Record struct {
	// Task and Seq say which event of which task it is: they tell a spending that
	// comes again from another.
	Task core.TaskID
	Seq  uint64
	// At is when, to the millisecond.
	At        time.Time
	Agent     core.AgentID
	Requester string
	// Thread is "" for a task on its own.
	Thread core.ThreadID
	Tokens core.Usage
}

// key is where the spending counts along a line.
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

// MaxKeys is how many keys a line has: what was used under the one that nothing
// has been added to for the longest then counts under OtherKey.
const (
	MaxKeys  = 10_000
	OtherKey = "(others)"
)

// Ledger adds up. It is safe for concurrent use.
type Ledger struct {
	mu    sync.Mutex
	lines map[By]*line
}

type line struct {
	keys   *lru.Cache[string, Total]
	others Total
}

// NewLedger makes an empty Ledger.
func NewLedger() *Ledger {
	l := &Ledger{lines: map[By]*line{}}
	for _, by := range []By{ByAgent, ByThread, ByRequester, ByDay, ByTask} {
		line := &line{others: Total{Key: OtherKey}}
		line.keys = lru.New(lru.Options[string, Total]{Count: MaxKeys, Evicted: func(_ string, t Total) { line.others.add(t.Tokens, t.Events) }})
		l.lines[by] = line
	}
	return l
}

// Add counts one event. Days are those of UTC.
func (l *Ledger) Add(s Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for by, line := range l.lines {
		key := s.key(by)
		t, _ := line.keys.Get(key)
		t.Key = key
		t.add(s.Tokens, 1)
		line.keys.Put(key, t)
	}
}

// Totals returns the totals along one line, by key. It returns an invalid Fault
// for a line that there is not.
func (l *Ledger) Totals(by By) ([]Total, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[by]
	if line == nil {
		return nil, core.NewFault(core.CodeInvalid, "cannot add up by %q: use agent, thread, requester, day or task", by)
	}
	out := make([]Total, 0, line.keys.Len()+1)
	for _, t := range line.keys.All() {
		out = append(out, t)
	}
	if line.others.Events > 0 {
		out = append(out, line.others)
	}
	slices.SortFunc(out, func(a, b Total) int { return cmp.Compare(a.Key, b.Key) })
	return out, nil
}
