package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// lookup is a call of agent_result for a task that is no longer in memory.
type lookup struct {
	call string
	task core.TaskID
}

// The bounds of lookups: how many of one session may wait for the journal, and how
// long one may take.
const (
	maxLookups  = 16
	lookupLimit = 5 * time.Second
)

// lookUp reads the task from the journal beside everything else that the session
// does, and answers the call with what it came to. It returns an overloaded Fault
// when too many such calls wait.
func (s *Session) lookUp(call string, task core.TaskID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lookups) == maxLookups {
		return core.NewFault(core.CodeOverloaded, "%d calls wait for the journal already: call again once they are answered", maxLookups)
	}
	s.lookups = append(s.lookups, lookup{call, task})
	if len(s.lookups) == 1 {
		s.hub.spawn(s.readLookups)
	}
	return nil
}

// readLookups answers calls until none is left.
func (s *Session) readLookups(ctx context.Context) {
	for {
		s.mu.Lock()
		next := s.lookups[0]
		s.mu.Unlock()
		o := s.readResult(ctx, next.task)
		o.Call = next.call
		s.feed.pushTool(o)
		s.mu.Lock()
		s.lookups = s.lookups[1:]
		done := len(s.lookups) == 0
		s.mu.Unlock()
		if done {
			return
		}
	}
}

// readResult tells of a task that is in the journal alone: it has ended.
func (s *Session) readResult(ctx context.Context, id core.TaskID) *ToolOutput {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	t, err := s.hub.Task(ctx, s.peer.Principal, id)
	if err != nil {
		return &ToolOutput{Fault: core.AsFault(err)}
	}
	return result(t)
}
