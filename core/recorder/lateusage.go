package recorder

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// lateUsage is the usage of agents after the end of their tasks, until it is stored: nothing
// follows the end of a task, but the usage counts. There is one record for each task, so
// that it is bounded by the tasks that agents still work on. The zero lateUsage is empty.
type lateUsage struct {
	mu  sync.Mutex
	due map[*task.Task]usage.Record
}

// SpentLate stores usage of a task that has ended.
func (r *Recorder) SpentLate(t *task.Task, s usage.Record) {
	if r.opts.Usage != nil {
		r.late.add(t, s)
		fifo.Signal(r.inbox.roused)
	}
}

func (l *lateUsage) add(t *task.Task, s usage.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due == nil {
		l.due = map[*task.Task]usage.Record{}
	}
	s.Tokens = s.Tokens.Add(l.due[t].Tokens)
	l.due[t] = s
}

// take returns the records of tasks that are recorded: a store needs the usage of a task in
// order, so that usage before its end comes first.
func (l *lateUsage) take() []usage.Record {
	l.mu.Lock()
	tasks := slices.Collect(maps.Keys(l.due))
	l.mu.Unlock()
	tasks = slices.DeleteFunc(tasks, func(t *task.Task) bool { return !t.IsRecorded() })
	slices.SortFunc(tasks, func(a, b *task.Task) int { return cmp.Compare(a.ID(), b.ID()) })
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []usage.Record
	for _, t := range tasks {
		all = append(all, l.due[t])
		delete(l.due, t)
	}
	return all
}

// writeLateUsage writes late usage to the store, as far as take returns it.
func (r *Recorder) writeLateUsage(ctx context.Context) error {
	due := r.late.take()
	if len(due) == 0 {
		return nil
	}
	r.lag.hold()
	return r.insist(ctx, func(ctx context.Context) error { return r.opts.Usage.Append(ctx, due...) })
}
