package pi

import "context"

// workers is how many jobs may be at the disk at once.
const workers = 4

// job is something that waits for a disk, beside the lock.
type job func(context.Context)

// work has do run beside the lock, since it waits for a disk: the command settles
// with what it returns. The context ends with the server. Server.mu is held.
func (s *Server) work(x *execution, do func(context.Context) outcome) outcome {
	s.later(func(ctx context.Context) {
		o := do(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finish(x, o)
	})
	return outcome{pending: true}
}

// later has a job done beside the lock. What is there when the server ends is still
// done. Server.mu is held.
func (s *Server) later(j job) {
	s.jobs = append(s.jobs, j)
	signal(s.toDo)
}

// labour does the jobs until the context ends and none is left.
func (s *Server) labour(ctx context.Context) {
	for {
		s.mu.Lock()
		if len(s.jobs) == 0 {
			s.mu.Unlock()
			if ctx.Err() != nil {
				return
			}
			select {
			case <-s.toDo:
			case <-ctx.Done():
			}
			continue
		}
		do := s.jobs[0]
		s.jobs[0] = nil
		s.jobs = s.jobs[1:]
		if len(s.jobs) > 0 {
			signal(s.toDo)
		}
		s.mu.Unlock()
		do(ctx)
	}
}
