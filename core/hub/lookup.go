package hub

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// lookup is a tool call about a task that is no longer in memory: the command that looks
// at the task, and what makes the result of its outcome.
type lookup struct {
	session *Session
	call    string
	command core.Command
	result  func(outcome) *tool.Result
}

// The bounds of lookups: how many may wait for the journal, and how long one may
// take.
const (
	maxLookups  = 64
	lookupLimit = 5 * time.Second
)

// noWait is the context of what must not wait for the journal.
var noWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// lookUp answers a tool call with the result of a command that looks at a task: at once if
// the task is in memory, else beside everything that the session does. A nil result
// follows later. It returns an overloaded Fault when too many calls wait for the journal.
func (s *Session) lookUp(call string, c core.Command, result func(outcome) *tool.Result) (*tool.Result, error) {
	if s.hub.tasks.Get(core.TaskID(c.Object())) != nil {
		o, err := s.hub.do(noWait, s, core.Call{Principal: s.identity.Principal, Command: c}, nil)
		switch {
		case err == nil:
			return result(o), nil
		case !errors.Is(err, context.Canceled):
			return nil, err
		} // it has left the memory just now
	}
	select {
	case s.hub.lookups <- lookup{s, call, c, result}:
		return nil, nil
	default:
		return nil, core.NewFault(core.CodeOverloaded, "%d calls wait for the journal already: call again later", maxLookups)
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
			if o := h.runLookup(ctx, l); o != nil {
				o.Call = l.call
				l.session.inbox.push(Batch{Tool: o})
			}
		}
	}
}

func (s *Session) isClosed() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.closed
}

func (h *Hub) runLookup(ctx context.Context, l lookup) *tool.Result {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	o, err := h.do(ctx, l.session, core.Call{Principal: l.session.identity.Principal, Command: l.command}, nil)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &tool.Result{Fault: core.NewFault(core.CodeTimeout, "the journal did not answer within %s: call again", lookupLimit)}
	case err != nil:
		return &tool.Result{Fault: core.AsFault(err)}
	}
	return l.result(o)
}
