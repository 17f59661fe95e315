package hub

import (
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Report takes in what the agent of the session says of a task. It returns a
// not_authorized Fault when the session does not have the task, a conflict Fault
// when the task has ended already, an invalid Fault for a kind that agents do not
// say, and a too_large Fault when the task has said more than it may, which ends it.
// What comes late is counted and not delivered; the usage of an agent that still
// works on the task adds up all the same.
func (s *Session) Report(id core.TaskID, body core.Body, foreign *core.Foreign) error {
	s.mu.Lock()
	w := s.work[id]
	s.mu.Unlock()
	h := s.hub
	if w == nil {
		return h.notHeld(s, id)
	}
	t := w.task
	if err := checkForeign(foreign); err != nil {
		return err
	}
	switch b := body.(type) {
	case core.Failed:
		if b.Fault == nil {
			body = core.Failed{Fault: core.NewFault(core.CodeInternal, "the agent failed without saying why")}
		}
		failed := body.(core.Failed)
		again, err := h.attemptFailed(t, s, attempt{agent: s.agentID()}, failed, foreign)
		if again && h.route(t) != nil {
			t.end(failed, nil)
		}
		return err
	case core.Done:
		if len(b.Data) > 0 && !json.Valid(b.Data) {
			return core.NewFault(core.CodeInvalid, "the data of the answer is not JSON")
		}
		return s.reportEnd(t, body, foreign)
	case core.Cancelled:
		return s.reportEnd(t, body, foreign)
	case core.Text:
		if b.Text == "" && foreign == nil {
			return nil
		}
	case core.Opened, core.Assigned, core.ApprovalDecided, core.Injected, core.Retrying, core.CancelRequested:
		return core.NewFault(core.CodeInvalid, "an agent does not say %s", body.Kind())
	}

	var crossed []usage.BudgetStatus
	t.mu.Lock()
	if err := t.held(s); err != nil {
		if u, ok := body.(core.Usage); ok && t.state == Ended && t.worker == s {
			crossed = t.spendLate(u)
		}
		t.mu.Unlock()
		h.noteCrossed(crossed)
		return err
	}
	if t.bytes > h.limits.TaskBytes {
		t.mu.Unlock()
		f := core.NewFault(core.CodeTooLarge, "the answer has more than %d bytes: the operator can raise the limit of a task", h.limits.TaskBytes)
		t.end(core.Failed{Fault: f}, nil)
		return f
	}
	t.append(body, foreign)
	if body.Kind().Output() {
		t.output = true
	}
	switch b := body.(type) {
	case core.Accepted:
		t.receipt.Stage, t.receipt.Agent, t.receipt.At = core.StageAcknowledged, t.agent, t.log.last().At
	case core.ApprovalRequested:
		t.await(b)
	case core.ToolState:
		if b.State >= core.ToolRunning {
			t.goneOn(b.ID)
		}
	case core.ToolResult:
		t.goneOn(b.ID)
	case core.Usage:
		crossed = t.spend(b)
	}
	t.mu.Unlock()
	h.noteCrossed(crossed)
	return nil
}

// notHeld returns why a session that does not have the task may not report on it:
// its agent has ended the task, or never had it.
func (h *Hub) notHeld(s *Session, id core.TaskID) error {
	h.mu.Lock()
	t, seated := h.tasks[id], s.id != "" && h.agents[s.id] == s
	h.mu.Unlock()
	if t != nil && seated && t.Agent() == s.agentID() && t.hasEnded() {
		h.Count("report.late")
		return core.NewFault(core.CodeConflict, "task %s has ended", id)
	}
	h.Count("report.not_held")
	return core.NewFault(core.CodeNotAuthorized, "this connection does not have task %s", id)
}

// held returns why the session may not report on the task now. Callers hold mu.
func (t *Task) held(s *Session) error {
	switch {
	case t.state == Ended:
		t.hub.Count("report.late")
		return core.NewFault(core.CodeConflict, "task %s has ended", t.id)
	case t.worker != s:
		t.hub.Count("report.not_held")
		return core.NewFault(core.CodeNotAuthorized, "task %s was given to another agent", t.id)
	}
	return nil
}

func (s *Session) reportEnd(t *Task, body core.Body, foreign *core.Foreign) error {
	t.mu.Lock()
	now := time.Now()
	err := t.held(s)
	if err == nil {
		t.appendAt(now, body, foreign)
	}
	t.mu.Unlock()
	s.hub.release(s, t, now)
	if err == nil {
		s.hub.ended(t)
	}
	return err
}

// attempt is a try at a task that failed: by whom the task is not tried again. An agent
// that failed is not given it any more; of one whose connection was lost that
// connection is not, and the next one counts as another agent.
type attempt struct {
	agent core.AgentID
	sess  *Session
}

// triedBy reports whether the session is not to be given the task any more. Callers hold
// Hub.mu, while the task waits or looks for an agent.
func (t *Task) triedBy(s *Session) bool {
	for _, a := range t.tried {
		if a.sess == s || a.sess == nil && (a.agent == s.id || a.agent == s.offered()) {
			return true
		}
	}
	return false
}

// attemptFailed ends a task, or takes it from its agent and reports that it is to go to
// another, where the request leaves that open and nothing has been said yet.
func (h *Hub) attemptFailed(t *Task, s *Session, by attempt, failed core.Failed, foreign *core.Foreign) (again bool, err error) {
	t.mu.Lock()
	err = t.held(s)
	again = err == nil && failed.Fault.Retryable && !t.output && !t.asked && t.attempt <= h.limits.Retries &&
		t.request.To.Reach() != core.ReachAgent
	switch {
	case err != nil:
	case again:
		t.tried = append(t.tried, by)
		t.append(core.Retrying{Attempt: t.attempt, Agent: s.id, Fault: failed.Fault}, foreign)
		t.detach(s, Agent)
		t.worker, t.state = nil, Queued
		t.dueWith(0)
		h.questions.taskEnded(t.id)
		t.receipt = core.Receipt{Task: t.id, Stage: core.StageAccepted, At: time.Now()}
	default:
		t.append(failed, foreign)
	}
	t.mu.Unlock()
	h.release(s, t, time.Now())
	if err == nil && !again {
		h.ended(t)
	}
	return again, err
}

// Delivered notes that the agent's transport took the assignment of a task: the
// receipt says so (promise P4), and a notice is done.
func (s *Session) Delivered(id core.TaskID) {
	s.mu.Lock()
	w := s.work[id]
	s.mu.Unlock()
	if w == nil {
		return
	}
	t := w.task
	t.mu.Lock()
	if t.worker == s && t.receipt.Stage < core.StageDelivered {
		t.receipt.Stage, t.receipt.Agent, t.receipt.At = core.StageDelivered, t.agent, time.Now()
	}
	t.mu.Unlock()
	if t.request.Intent == core.IntentNotify {
		t.end(core.Done{}, nil)
		if !w.slot {
			s.hub.release(s, t, time.Now())
		}
	}
}
