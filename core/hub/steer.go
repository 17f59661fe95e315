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
	return s.hub.cancel(t, s.peer.Principal.ID, reason)
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
	case !h.rules.MayRead(s.peer.Principal, t.from):
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
			h.Count("cancel.unanswered")
			t.end(core.Cancelled{Reason: reason}, nil)
		})
	}
	t.mu.Unlock()
	if !told {
		t.end(core.Cancelled{Reason: reason}, nil)
	}
	return nil
}

// Inject pushes context to the agent of a task while it works. The answer comes
// as an event. It returns an unsupported Fault when the agent takes none, and a
// conflict Fault when no agent works on the task now.
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
	t.append(in, nil)
	return nil
}

// Decide answers an approval that the agent of a task waits for. The first answer
// counts; a later one is a conflict Fault, one that nobody asked for an invalid
// Fault.
func (s *Session) Decide(id core.TaskID, d core.ApprovalDecided) error {
	t, err := s.mine(id)
	if err != nil {
		return err
	}
	d.By = s.peer.Principal.ID
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.decide(d)
}

// await begins to wait for a decision. Callers hold mu.
func (t *Task) await(a core.ApprovalRequested) {
	if t.pending == nil {
		t.pending, t.decided = map[string]*time.Timer{}, map[string]bool{}
	}
	if t.pending[a.ID] != nil {
		return
	}
	delete(t.decided, a.ID)
	t.pending[a.ID] = time.AfterFunc(t.hub.limits.ApprovalTimeout, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		_ = t.decide(core.ApprovalDecided{ID: a.ID, By: "hub", Reason: "nobody decided in time"})
	})
	if t.allowAll != "" {
		_ = t.decide(core.ApprovalDecided{ID: a.ID, Approved: true, All: true, By: t.allowAll})
	}
}

// decide settles an approval. Callers hold mu.
func (t *Task) decide(d core.ApprovalDecided) error {
	timer := t.pending[d.ID]
	switch {
	case t.state == Ended:
		return core.NewFault(core.CodeConflict, "task %s has ended", t.id)
	case t.decided[d.ID]:
		return core.NewFault(core.CodeConflict, "the approval of %q was decided before", d.ID)
	case timer == nil:
		return core.NewFault(core.CodeInvalid, "task %s waits for no approval of %q", t.id, d.ID)
	}
	timer.Stop()
	delete(t.pending, d.ID)
	t.decided[d.ID] = true
	if d.Approved && d.All {
		t.allowAll = d.By
	}
	t.append(d, nil)
	return nil
}
