package pi

import "context"

// workers is how many commands may be at the disk at once.
const workers = 4

// job is a command that waits for a disk, beside the lock.
type job struct {
	x  *execution
	do func(context.Context) outcome
}

// work has do run beside the lock, since it waits for a disk: the command settles
// with what it returns. The context ends with the server. Server.mu is held.
func (s *Server) work(x *execution, do func(context.Context) outcome) outcome {
	s.jobs = append(s.jobs, job{x, do})
	signal(s.toDo)
	return outcome{pending: true}
}

// labour does the jobs until the context ends.
func (s *Server) labour(ctx context.Context) {
	for {
		s.mu.Lock()
		if len(s.jobs) == 0 {
			s.mu.Unlock()
			select {
			case <-s.toDo:
				continue
			case <-ctx.Done():
				return
			}
		}
		j := s.jobs[0]
		s.jobs[0] = job{}
		s.jobs = s.jobs[1:]
		if len(s.jobs) > 0 {
			signal(s.toDo)
		}
		s.mu.Unlock()
		o := j.do(ctx)
		s.mu.Lock()
		s.finish(j.x, o)
		s.mu.Unlock()
	}
}
