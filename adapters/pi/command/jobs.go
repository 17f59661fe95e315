package command

import (
	"context"
	"slices"
	"sync"
)

// Workers is how many jobs may be at the disk at once, beside a list of the files
// there: that can take long, and holds up nothing else.
const Workers = 4

// job is something that takes long: it waits for a disk, or reads a conversation. x is
// the command that it is done for, if it is for one.
type job struct {
	do func(context.Context)
	X  *Execution
}

// Jobs wait for a worker, first in, first out. They are safe for concurrent use.
type Jobs struct {
	wake chan struct{} // signalled when there is one

	mu      sync.Mutex
	Waiting []job
}

// NewJobs makes an empty queue of jobs.
func NewJobs() *Jobs { return &Jobs{wake: make(chan struct{}, 1)} }

// Add has a job done by a worker. What is there when the workers end is still done.
func (q *Jobs) Add(do func(context.Context)) { q.put(job{do: do}) }

func (q *Jobs) put(j job) {
	q.mu.Lock()
	q.Waiting = append(q.Waiting, j)
	q.mu.Unlock()
	Signal(q.wake)
}

// take returns the first job, and has another worker woken for those behind it.
func (q *Jobs) take() (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.Waiting) == 0 {
		return job{}, false
	}
	j := q.Waiting[0]
	q.Waiting[0] = job{}
	q.Waiting = q.Waiting[1:]
	if len(q.Waiting) > 0 {
		Signal(q.wake)
	}
	return j, true
}

// withdraw takes the job of a command away. It reports false of one that has begun.
func (q *Jobs) withdraw(x *Execution) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.Waiting, func(j job) bool { return j.X == x })
	if i >= 0 {
		q.Waiting = slices.Delete(q.Waiting, i, i+1)
	}
	return i >= 0
}

// Work does the jobs until the context ends and none is left.
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

// Len is how many jobs wait.
func (q *Jobs) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.Waiting)
}

// Signal wakes who waits for the channel, now or when it looks next.
func Signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
