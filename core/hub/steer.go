package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Cancel asks that a task be stopped. The task ends when its agent confirms or after a
// grace, and at once when the agent does not support cancelling. It returns an unknown_task
// or not_authorized Fault, or a conflict Fault when the task has ended.
func (s *Session) Cancel(id core.TaskID, reason string) error {
	_, err := s.do(core.Cancel{Task: id, Reason: reason})
	return err
}

// Inject pushes context to the agent of a running task. The answer comes as an event. It
// returns an unsupported Fault when the agent accepts none, a too_large Fault for more than
// the task has room for, and a conflict Fault when no agent works on the task. A trace that is
// malformed counts for nothing. It waits for another hub as [Session.Decide] does.
func (s *Session) Inject(ctx context.Context, id core.TaskID, in core.Injected) error {
	c := core.Call{Principal: s.identity.Principal, Trace: in.Trace.Carried()}
	if in.Trace = (core.Trace{}); c.Trace.Parent == "" {
		c.Trace = s.identity.Trace
	}
	c.Command = core.Inject{Task: id, Context: in}
	_, err := s.hub.do(ctx, s, c, nil)
	return err
}

// inject pushes context from the principal. The hub names the source (promise P7); the words
// of the sender stand beside it.
func inject(t *task.Task, from core.Principal, in core.Injected) error {
	in.Source, in.Claimed = from.ID, in.Source
	if in.Claimed == in.Source {
		in.Claimed = ""
	}
	if in.ID == "" {
		in.ID = core.NewID()
	}
	if in.Priority == 0 {
		in.Priority = core.InjectionNormal
	}
	return t.Inject(in)
}
