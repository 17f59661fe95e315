package hub

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// lateUsage are what agents spent on tasks that had ended without them, until
// the recorder has stored it: nothing follows the end of a task, but what was spent
// was spent. What a task spent comes together, so that they are bounded by the tasks
// that agents still work on. The zero lateUsage are empty.
type lateUsage struct {
	mu  sync.Mutex
	due map[*Task]usage.Record
}

func (l *lateUsage) add(t *Task, s usage.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due == nil {
		l.due = map[*Task]usage.Record{}
	}
	s.Tokens = s.Tokens.Add(l.due[t].Tokens)
	l.due[t] = s
}

// take returns what may be stored: a store takes the spendings of a task in order,
// so that those within the task come first.
func (l *lateUsage) take() []usage.Record {
	l.mu.Lock()
	tasks := slices.Collect(maps.Keys(l.due))
	l.mu.Unlock()
	tasks = slices.DeleteFunc(tasks, func(t *Task) bool { return !t.isRecorded() })
	slices.SortFunc(tasks, func(a, b *Task) int { return cmp.Compare(a.id, b.id) })
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []usage.Record
	for _, t := range tasks {
		all = append(all, l.due[t])
		delete(l.due, t)
	}
	return all
}

// isRecorded reports whether the journal has all of a task.
func (t *Task) isRecorded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recorded >= t.last()
}

// spendLate counts what the agent of a task that has ended without it says that it
// spends on it. An agent that was cancelled, or was too slow, is known to go on.
// Callers hold mu.
func (t *Task) spendLate(u core.Usage) (crossed []usage.BudgetStatus) {
	t.late++
	last := t.log.last()
	last.Seq, last.Merged, last.At = last.End()+t.late, nil, time.Now() // no event has the number
	s := t.spending(last, u)
	t.hub.Count("usage.late")
	t.hub.usage.Add(s)
	for _, st := range t.hub.budgets.Add(s) {
		if st.Crossed() {
			crossed = append(crossed, st)
		}
	}
	if t.hub.usageStore != nil {
		t.hub.lateUsage.add(t, s)
		t.hub.recorder.sess.inbox.stir()
	}
	return crossed
}

// writeLateUsage hands what was spent behind the end of tasks to the store, as
// far as it may.
func (r *recorder) writeLateUsage(ctx context.Context) error {
	due := r.hub.lateUsage.take()
	if len(due) == 0 {
		return nil
	}
	r.lag.hold()
	return r.insist(ctx, func(ctx context.Context) error { return r.hub.usageStore.Append(ctx, due...) })
}
