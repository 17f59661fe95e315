package hub

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// lookup is a call of agent_result for a task that is no longer in memory.
type lookup struct {
	session *Session
	call    string
	task    core.TaskID
}

// The bounds of lookups: how many may wait for the journal, and how long one may
// take.
const (
	maxLookups  = 64
	lookupLimit = 5 * time.Second
)

// lookUp has the task read from the journal beside everything else that the session
// does, and the call answered with what it came to. It returns an overloaded Fault
// when too many such calls wait.
func (s *Session) lookUp(call string, task core.TaskID) error {
	select {
	case s.hub.lookups <- lookup{s, call, task}:
		return nil
	default:
		return core.NewFault(core.CodeOverloaded, "%d calls wait for the journal already: call again later", maxLookups)
	}
}

// readLookups answers lookups until ctx ends. What nobody waits for any more is not
// read.
func (h *Hub) readLookups(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-h.lookups:
			if l.session.isClosed() {
				continue
			}
			o := h.readResult(ctx, l)
			o.Call = l.call
			l.session.inbox.pushTool(o)
		}
	}
}

func (s *Session) isClosed() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.closed
}

// readResult tells of a task that is in the journal alone: it has ended.
func (h *Hub) readResult(ctx context.Context, l lookup) *tool.Result {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	t, err := h.Task(ctx, l.session.identity.Principal, l.task)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &tool.Result{Fault: core.NewFault(core.CodeTimeout, "the journal did not answer within %s: call again", lookupLimit)}
	case err != nil:
		return &tool.Result{Fault: core.AsFault(err)}
	}
	return result(t)
}
