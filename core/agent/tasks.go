package agent

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// Tasks are the pending tasks of one connection: those that run and those that wait for a
// worker. It is safe for concurrent use.
type Tasks[T any] struct {
	ctx     context.Context //nolint:containedctx // the parent of every task's context, as long as the connection lives
	work    func(ctx context.Context, id string, task T)
	leave   *Leave
	most    int
	queue   chan *entry[T]
	workers sync.WaitGroup

	mu   sync.Mutex
	byID map[string]*entry[T]
}

// entry is a pending task.
type entry[T any] struct {
	id     string
	task   T
	ctx    context.Context //nolint:containedctx // it waits in the queue with its task
	cancel context.CancelCauseFunc
}

// Run starts workers that call work with one task at a time each, in the order in which
// they were added. At most most tasks are pending. The context of a task descends from ctx
// and ends when the task is cancelled; work is also called for a task that was cancelled
// before it started. Close ends the workers. ctx may carry a [Leave]: a task has begun with Add, and
// ended when work has returned.
func Run[T any](ctx context.Context, workers, most int, work func(ctx context.Context, id string, task T)) *Tasks[T] {
	t := &Tasks[T]{ctx: ctx, work: work, leave: LeaveOf(ctx), most: most, queue: make(chan *entry[T], most), byID: map[string]*entry[T]{}}
	for range workers {
		t.workers.Go(func() {
			for e := range t.queue {
				t.work(e.ctx, e.id, e.task)
				t.release(e)
				e.cancel(nil)
				t.leave.End()
			}
		})
	}
	return t
}

// Close waits until every pending task is done. Nothing may be added any more.
func (t *Tasks[T]) Close() {
	close(t.queue)
	t.workers.Wait()
}

// Add queues a task for a worker, unless a pending one has its id. It returns why it refuses a task: an
// overloaded Fault when too many are pending, the one of [Leave.Begin] when the agent leaves. It never
// waits.
func (t *Tasks[T]) Add(id string, task T) *core.Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[id] != nil {
		return nil // an answer to a repeated task would end the first
	}
	if refused := t.leave.Begin(); refused != nil {
		return refused
	}
	if len(t.byID) >= t.most {
		t.leave.End()
		return core.NewFault(core.CodeOverloaded, "the agent has %d tasks already: ask again later", t.most)
	}
	e := &entry[T]{id: id, task: task}
	e.ctx, e.cancel = context.WithCancelCause(t.ctx)
	t.byID[id] = e
	t.queue <- e // it has room for all pending tasks
	return nil
}

// Find returns the pending task with an id.
func (t *Tasks[T]) Find(id string) (task T, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byID[id]; e != nil {
		return e.task, true
	}
	return task, false
}

// Cancel cancels the context of a pending task with the cause why, and reports whether
// there is one. note, unless it is nil, is called with the task before, while none is
// released: it must return soon and must not call Tasks.
func (t *Tasks[T]) Cancel(id string, why error, note func(T)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[id]
	if e == nil {
		return false
	}
	if note != nil {
		note(e.task)
	}
	e.cancel(why)
	return true
}

// Release removes a task before its work returns: it is no longer found, and its id and its
// place are free.
func (t *Tasks[T]) Release(id string) {
	t.mu.Lock()
	e := t.byID[id]
	t.mu.Unlock()
	if e != nil {
		t.release(e)
	}
}

func (t *Tasks[T]) release(e *entry[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[e.id] == e { // and not a later task with the id
		delete(t.byID, e.id)
	}
}

// Len returns how many tasks are pending.
func (t *Tasks[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}
