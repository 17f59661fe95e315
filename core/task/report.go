package task

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Report takes in what an agent says of the task that it works on, but for its end:
// see [Task.Conclude] and [Task.Fail]. It returns a not_authorized Fault when the worker
// does not have the task, a conflict Fault when the task has ended already, an invalid
// Fault for a kind that agents do not say, and a too_large Fault when the task has said
// more than it may, which ends it. What comes late is counted and not delivered; the
// usage of an agent that still works on the task is counted nevertheless.
func (t *Task) Report(w Worker, body core.Body, foreign *core.Foreign) error {
	switch b := body.(type) {
	case core.Text:
		if b.Text == "" && foreign == nil {
			return nil
		}
	case core.Opened, core.Assigned, core.ApprovalDecided, core.Injected, core.Retrying, core.CancelRequested:
		return core.NewFault(core.CodeInvalid, "an agent does not say %s", body.Kind())
	}
	var crossed []usage.BudgetStatus
	defer func() { // with mu released: somebody may be told of it
		if len(crossed) > 0 {
			t.store.host.BudgetsCrossed(crossed)
		}
	}()
	t.mu.Lock()
	if err := t.held(w); err != nil {
		if u, ok := body.(core.Usage); ok && t.state == Ended && t.worker == w {
			crossed = t.spendLate(u)
		}
		t.mu.Unlock()
		return err
	}
	if most := t.store.limits.TaskBytes; t.bytes > most {
		t.mu.Unlock()
		f := core.NewFault(core.CodeTooLarge, "the answer has more than %d bytes: the operator can raise the limit of a task", most)
		t.End(core.Failed{Fault: f})
		return f
	}
	t.append(body, foreign)
	if body.Kind().Output() {
		t.output = true
	}
	switch b := body.(type) {
	case core.Accepted:
		t.receipt.Stage, t.receipt.Agent, t.receipt.At = core.StageAcknowledged, t.agent, t.log.Last().At
	case core.ApprovalRequested:
		t.await(b)
	case core.ToolState:
		if b.State >= core.ToolRunning {
			t.proceeded(b.ID)
		}
	case core.ToolResult:
		t.proceeded(b.ID)
	case core.Usage:
		crossed = t.spend(b)
	}
	t.mu.Unlock()
	return nil
}

// held returns why the worker may not report on the task now. Callers hold mu.
func (t *Task) held(w Worker) error {
	switch {
	case t.state == Ended:
		t.store.host.Count("report.late")
		return core.NewFault(core.CodeConflict, "task %s has ended", t.id)
	case t.worker != w:
		t.store.host.Count("report.not_held")
		return core.NewFault(core.CodeNotAuthorized, "task %s was given to another agent", t.id)
	}
	return nil
}

// Conclude ends the task with what its agent says: Done or Cancelled. It returns the
// errors of Report.
func (t *Task) Conclude(w Worker, now time.Time, body core.Body, foreign *core.Foreign) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.held(w); err != nil {
		return err
	}
	t.appendAt(now, body, foreign)
	return nil
}

// Fail ends the task as its agent failed, or takes it from the agent and reports that
// it is to go to another, where the request leaves that open and nothing has been said
// yet. It returns the errors of Report.
func (t *Task) Fail(w Worker, failed core.Failed, foreign *core.Foreign) (again bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.held(w); err != nil {
		return false, err
	}
	if !failed.Fault.Retryable || t.output || t.asked || t.attempt > t.store.limits.Retries || t.request.To.Reach() == core.ReachAgent {
		t.append(failed, foreign)
		return false, nil
	}
	t.append(core.Retrying{Attempt: t.attempt, Agent: t.agent, Fault: failed.Fault}, foreign)
	t.detach(w, Agent)
	t.worker, t.state = nil, Queued
	t.dueWith(0)
	t.receipt = core.Receipt{Task: t.id, Stage: core.StageAccepted, At: time.Now()}
	return true, nil
}

// Assignment is to whom a task is given.
type Assignment struct {
	Worker Worker
	Agent  core.AgentID
	// MostTime is how long the agent may take; zero is until the deadline.
	MostTime time.Duration
	// History returns the turns that the agent gets, given those that the requester
	// told; nil gives it the latter.
	History func(told []core.Turn) []core.Turn
}

// Assign gives the task to an agent. It reports false when the task has ended.
func (t *Task) Assign(a Assignment) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Ended {
		return false
	}
	t.state, t.worker, t.agent = Running, a.Worker, a.Agent
	t.attempt++
	if !t.IsNotice() {
		t.dueWith(a.MostTime)
	}
	t.request.History = t.request.History[:t.told:t.told]
	if a.History != nil {
		t.request.History = a.History(t.request.History)
	}
	t.attach(a.Worker, Agent, nil, t.last())
	t.append(core.Assigned{Agent: a.Agent, Attempt: t.attempt}, nil)
	return true
}

// Delivered notes that the agent's transport took the assignment (promise P4).
func (t *Task) Delivered(w Worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.worker == w && t.receipt.Stage < core.StageDelivered {
		t.receipt.Stage, t.receipt.Agent, t.receipt.At = core.StageDelivered, t.agent, time.Now()
	}
}
