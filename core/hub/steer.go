package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Cancel asks that a task be stopped. Its agent is told if it can be; the task
// ends when the agent says so or its grace is over, at once when the agent cannot
// be told. It returns an unknown_task or not_authorized Fault, or a conflict Fault
// when the task has ended.
func (s *Session) Cancel(id core.TaskID, reason string) error {
	t, err := s.mine(id)
	if err != nil {
		return err
	}
	return s.hub.cancel(t, s.identity.Principal.ID, reason)
}

// mine returns a live task that the session's principal may steer.
func (s *Session) mine(id core.TaskID) (*Task, error) {
	h := s.hub
	h.mu.Lock()
	t := h.tasks[id]
	h.mu.Unlock()
	switch {
	case t == nil:
		return nil, core.NewFault(core.CodeUnknownTask, "no task %s runs here", id)
	case !h.rules.MayRead(s.identity.Principal, t.from):
		return nil, core.NewFault(core.CodeNotAuthorized, "task %s belongs to somebody else", id)
	}
	return t, nil
}

func (h *Hub) cancel(t *Task, by, reason string) error {
	t.mu.Lock()
	switch {
	case t.state == Ended:
		t.mu.Unlock()
		return core.NewFault(core.CodeConflict, "task %s has ended already", t.id)
	case t.asked:
		t.mu.Unlock()
		return nil
	}
	t.asked = true
	t.append(core.CancelRequested{By: by, Reason: reason}, nil)
	told := t.state == Running && t.worker.features().Has(core.FeatureCancellation)
	if told {
		t.cancel = time.AfterFunc(h.limits.CancelGrace, func() {
			if t.end(core.Cancelled{Reason: reason}, nil) {
				h.Count("cancel.unanswered")
				h.log.Warn("agent did not answer a cancel in time: the task has ended without it", "agent", t.Agent(), "task", t.id)
			}
		})
	}
	t.mu.Unlock()
	if !told {
		t.end(core.Cancelled{Reason: reason}, nil)
	}
	return nil
}

// Inject pushes context to the agent of a task while it works. The answer comes
// as an event. It returns an unsupported Fault when the agent takes none, a too_large
// Fault for more than the task has room for, and a conflict Fault when no agent works
// on the task now.
func (s *Session) Inject(id core.TaskID, in core.Injected) error {
	t, err := s.mine(id)
	if err != nil {
		return err
	}
	if in.ID == "" {
		in.ID = core.NewID()
	}
	if in.Priority == 0 {
		in.Priority = core.InjectionNormal
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.state != Running:
		return core.NewFault(core.CodeConflict, "no agent works on task %s now: it is %s", id, t.state)
	case !t.worker.features().Has(core.FeatureInjection):
		s.hub.Count("refused.injection")
		return core.NewFault(core.CodeUnsupported, "agent %s takes no context while it works: wait for its answer and ask again", t.agent)
	}
	if err := t.takes(in); err != nil {
		return err
	}
	t.append(in, nil)
	return nil
}

// takes returns a too_large Fault for context that the task has no room for: it has
// as much as its agent may say. Callers hold mu.
func (t *Task) takes(in core.Injected) error {
	switch l := t.hub.limits; {
	case len(in.Content) > l.RequestBytes:
		return core.NewFault(core.CodeTooLarge, "the context has %d bytes, the limit is %d: send less, or say where it is", len(in.Content), l.RequestBytes)
	case t.bytes+len(in.Content) > l.TaskBytes:
		return core.NewFault(core.CodeTooLarge, "the task would have more than %d bytes: the operator can raise the limit of a task", l.TaskBytes)
	}
	return nil
}
