package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Do gives a [core.Cancel], [core.Inject], [core.Decide] or [core.Reply] in the name of a caller that has no session: it
// counts as no connection of its principal. It returns what the methods of [Session] for these commands return.
func (h *Hub) Do(ctx context.Context, by Identity, c core.Command) error {
	return (&Session{hub: h, identity: by}).Do(ctx, c)
}

// Do is [Hub.Do] in the name of the session's principal.
func (s *Session) Do(ctx context.Context, c core.Command) error {
	call := core.Call{Principal: s.identity.Principal, Command: c}
	if in, ok := c.(core.Inject); ok {
		if call.Trace = in.Context.Trace.Carried(); call.Trace.Parent == "" {
			call.Trace = s.identity.Trace
		}
		in.Context.Trace = core.Trace{} // it goes on in that of the call
		call.Command = in
	}
	_, err := s.hub.do(ctx, s, call, nil)
	return err
}

// Cancel asks that a task be stopped. The task ends when its agent confirms or after a
// grace, and at once when the agent does not support cancelling. It returns an unknown_task
// or not_authorized Fault, or a conflict Fault when the task has ended.
func (s *Session) Cancel(id core.TaskID, reason string) error {
	return s.Do(context.Background(), core.Cancel{Task: id, Reason: reason})
}

// Inject pushes context to the agent of a running task. The answer comes as an event. It
// returns an unsupported Fault when the agent accepts none, a too_large Fault for more than
// the task has room for, and a conflict Fault when no agent works on the task. A trace that is
// malformed counts for nothing. It waits for another hub as [Session.Decide] does.
func (s *Session) Inject(ctx context.Context, id core.TaskID, in core.Injected) error {
	return s.Do(ctx, core.Inject{Task: id, Context: in})
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
