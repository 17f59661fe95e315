package pi

import (
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
)

// Parts are the parts of a server that tests stall or wait for.
type Parts struct {
	Engine                 *command.Engine
	Disk, Lists, Summaries *command.Jobs
	Store                  *conversation.Store
}

// Parts returns the parts of the server.
func (s *Server) Parts() Parts { return Parts{s.engine, s.jobs, s.lists, s.summaries, s.store} }

// WithMaxQueued returns the options with another bound for the messages that wait in a session, in bytes.
func (o Options) WithMaxQueued(most int) Options {
	o.maxQueued = most
	return o
}

// Left counts the state of sessions, which must be 0 after they were deleted.
func (s *Server) Left() map[string]int {
	files, _ := s.store.Counts()
	s.engine.Lock()
	defer s.engine.Unlock()
	n := s.engine.Counts()
	left := map[string]int{
		"sessions": len(s.sessions), "runs": len(s.runs), "threads": len(s.threads), "files": files, "jobs": s.jobs.Len(),
		"commands": n.InFlight, "bytes of frames": n.InFlightBytes, "lanes": n.Lanes, "dependents": n.Dependents,
	}
	for _, ss := range s.sessions {
		if ss.busy() || ss.compacting != nil {
			left["busy sessions"]++
		}
	}
	for _, c := range s.clients {
		c.mu.Lock()
		left["subscriptions"] += len(c.subscriptions) + len(c.views) + c.Pending
		c.mu.Unlock()
	}
	return left
}

// Handle replaces the handler of a type of command.
func (s *Server) Handle(kind string, do func(*command.Execution) command.Outcome) {
	s.handlers[kind] = func(_ *Server, x *request) command.Outcome { return do(&x.Execution) }
}
