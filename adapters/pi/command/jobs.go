package command

import (
	"context"
	"slices"
	"sync"
)

// Workers is how many jobs may use the disk at once. Listing files can take long and has
// a worker of its own.
const Workers = 4

// job is work that takes long: it waits for a disk, or reads a conversation.
type job struct {
	do func(context.Context)
	x  *Execution // the command that it is for, or nil
}

// Jobs is a queue of jobs for workers, first in, first out. It is safe for concurrent use.
type Jobs struct {
	wake chan struct{} // signalled when there is a job

	mu      sync.Mutex
	waiting []job
}

// NewJobs returns an empty queue.
func NewJobs() *Jobs { return &Jobs{wake: make(chan struct{}, 1)} }

// Add queues a job. Jobs that are queued when the workers' context ends are still done.
func (q *Jobs) Add(do func(context.Context)) { q.put(job{do: do}) }

func (q *Jobs) put(j job) {
	q.mu.Lock()
	q.waiting = append(q.waiting, j)
	q.mu.Unlock()
	Signal(q.wake)
}

// take removes the first job, and wakes another worker if there are more.
func (q *Jobs) take() (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return job{}, false
	}
	j := q.waiting[0]
	q.waiting[0] = job{}
	q.waiting = q.waiting[1:]
	if len(q.waiting) > 0 {
		Signal(q.wake)
	}
	return j, true
}

// withdraw removes the job of a command. It reports false if the job has begun.
func (q *Jobs) withdraw(x *Execution) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.waiting, func(j job) bool { return j.x == x })
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// Work does jobs until the context ends and none is left.
func (q *Jobs) Work(ctx context.Context) {
	for {
		if j, ok := q.take(); ok {
			j.do(ctx)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
}

// Len returns how many jobs wait.
func (q *Jobs) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Signal wakes the receiver of a channel with a buffer of 1, now or when it receives next.
func Signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
