package pi

import (
	"context"
	"slices"
	"sync"
)

// workers is how many jobs may be at the disk at once, beside a list of the files
// there: that can take long, and holds up nothing else.
const workers = 4

// job is something that takes long: it waits for a disk, or reads a conversation. x is
// the command that it is done for, if it is for one.
type job struct {
	do func(context.Context)
	x  *execution
}

// jobs wait for a worker, first in, first out. They are safe for concurrent use.
type jobs struct {
	wake chan struct{} // signalled when there is one

	mu      sync.Mutex
	waiting []job
}

func newJobs() *jobs { return &jobs{wake: make(chan struct{}, 1)} }

// add has a job done by a worker. What is there when the workers end is still done.
func (q *jobs) add(do func(context.Context)) { q.put(job{do: do}) }

func (q *jobs) put(j job) {
	q.mu.Lock()
	q.waiting = append(q.waiting, j)
	q.mu.Unlock()
	signal(q.wake)
}

// take returns the first job, and has another worker woken for those behind it.
func (q *jobs) take() (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return job{}, false
	}
	j := q.waiting[0]
	q.waiting[0] = job{}
	q.waiting = q.waiting[1:]
	if len(q.waiting) > 0 {
		signal(q.wake)
	}
	return j, true
}

// withdraw takes the job of a command away. It reports false of one that has begun.
func (q *jobs) withdraw(x *execution) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.waiting, func(j job) bool { return j.x == x })
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// work does the jobs until the context ends and none is left.
func (q *jobs) work(ctx context.Context) {
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

// len is how many jobs wait.
func (q *jobs) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// work has do run beside the lock, since it waits for a disk: the command settles
// with what it returns, unless that is pending on something else. The context ends with
// the server. Server.mu is held.
func (s *Server) work(x *execution, do func(context.Context) outcome) outcome {
	return s.workOf(s.jobs, x, do)
}

// workOf is work for one kind of jobs.
func (s *Server) workOf(q *jobs, x *execution, do func(context.Context) outcome) outcome {
	x.abort = func() {
		if q.withdraw(x) {
			x.working = false
		}
	}
	q.put(job{x: x, do: func(ctx context.Context) {
		o := do(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !o.pending {
			s.finish(x, o)
		}
	}})
	return outcome{pending: true}
}
