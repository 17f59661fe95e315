package pi

import "context"

// workers is how many jobs may be at the disk at once, beside a list of the files
// there: that can take long, and holds up nothing else.
const workers = 4

// job is something that waits for a disk, beside the lock.
type job func(context.Context)

// jobs wait for a worker, first in, first out. Server.mu guards them.
type jobs struct {
	waiting []job
	wake    chan struct{} // signalled when there is one
}

func newJobs() jobs { return jobs{wake: make(chan struct{}, 1)} }

// add has a job done beside the lock. What is there when the server ends is still
// done. Server.mu is held.
func (q *jobs) add(j job) {
	q.waiting = append(q.waiting, j)
	signal(q.wake)
}

// work has do run beside the lock, since it waits for a disk: the command settles
// with what it returns, unless that is pending on something else. The context ends with
// the server. Server.mu is held.
func (s *Server) work(x *execution, do func(context.Context) outcome) outcome {
	return s.workOf(&s.jobs, x, do)
}

// workOf is work for one kind of jobs.
func (s *Server) workOf(q *jobs, x *execution, do func(context.Context) outcome) outcome {
	q.add(func(ctx context.Context) {
		o := do(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !o.pending {
			s.finish(x, o)
		}
	})
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
		do := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		if len(q.waiting) > 0 {
			signal(q.wake)
		}
		s.mu.Unlock()
		do(ctx)
	}
}
