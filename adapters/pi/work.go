package pi

import (
	"context"
	"slices"
)

// workers is how many jobs may be at the disk at once, beside a list of the files
// there: that can take long, and holds up nothing else.
const workers = 4

// job is something that takes long, beside the lock: it waits for a disk, or reads a
// conversation. x is the command that it is done for, if it is for one.
type job struct {
	do func(context.Context)
	x  *execution
}

// jobs wait for a worker, first in, first out. Server.mu guards them.
type jobs struct {
	waiting []job
	wake    chan struct{} // signalled when there is one
}

func newJobs() jobs { return jobs{wake: make(chan struct{}, 1)} }

// add has a job done beside the lock. What is there when the server ends is still
// done. Server.mu is held.
func (q *jobs) add(do func(context.Context)) { q.put(job{do: do}) }

func (q *jobs) put(j job) {
	q.waiting = append(q.waiting, j)
	signal(q.wake)
}

// withdraw takes the job of a command away that has not begun.
func (q *jobs) withdraw(x *execution) {
	if i := slices.IndexFunc(q.waiting, func(j job) bool { return j.x == x }); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		x.working = false
	}
}

// work has do run beside the lock, since it waits for a disk: the command settles
// with what it returns, unless that is pending on something else. The context ends with
// the server. Server.mu is held.
func (s *Server) work(x *execution, do func(context.Context) outcome) outcome {
	return s.workOf(&s.jobs, x, do)
}

// workOf is work for one kind of jobs.
func (s *Server) workOf(q *jobs, x *execution, do func(context.Context) outcome) outcome {
	x.abort = func() { q.withdraw(x) }
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

// labour does the jobs until the context ends and none is left.
func (s *Server) labour(ctx context.Context, q *jobs) {
	for {
		s.mu.Lock()
		if len(q.waiting) == 0 {
			s.mu.Unlock()
			if ctx.Err() != nil {
				return
			}
			select {
			case <-q.wake:
			case <-ctx.Done():
			}
			continue
		}
		do := q.waiting[0].do
		q.waiting[0] = job{}
		q.waiting = q.waiting[1:]
		if len(q.waiting) > 0 {
			signal(q.wake)
		}
		s.mu.Unlock()
		do(ctx)
	}
}
