package task

import (
	"math"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Report appends an event from the agent of the task, other than its end: see
// [Task.Conclude] and [Task.Fail]. It returns a not_authorized Fault if the worker does not
// have the task, a conflict Fault if the task has ended, an invalid Fault for a kind that
// does not come from agents, and a too_large Fault if the task exceeds its size, or an
// overloaded one if it is the largest when the hub has no memory left, both of which end it. Late
// events are counted and not delivered; late usage still counts towards budgets.
func (t *Task) Report(w Worker, body core.Body, foreign *core.Foreign) error {
	switch b := body.(type) {
	case core.Text:
		if b.Text == "" && foreign == nil {
			return nil
		}
	case core.ApprovalRequested:
		b.InputSHA256 = core.InputDigest(b.Input)
		body = b
	case core.Opened, core.Assigned, core.ApprovalDecided, core.QuestionAsked, core.QuestionAnswered, core.Injected, core.Retrying, core.CancelRequested:
		return core.NewFault(core.CodeInvalid, "an agent does not say %s", body.Kind())
	}
	return t.report(w, body, foreign)
}

// report is Report for what the hub itself says of the agent's work, too.
func (t *Task) report(w Worker, body core.Body, foreign *core.Foreign) error {
	if u, ok := body.(core.Usage); ok {
		body = t.store.host.Priced(u)
	}
	var crossed []usage.BudgetStatus
	defer func() { // without mu: see Host.BudgetsCrossed
		if len(crossed) > 0 {
			t.store.host.BudgetsCrossed(crossed)
		}
	}()
	room := t.store.taskBytes()
	t.mu.Lock()
	if err := t.checkWorker(w); err != nil {
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
	if room < math.MaxInt && t.memory()+(core.Event{Body: body}).Size() > room {
		f := t.store.tooMuch(t.memory())
		t.mu.Unlock()
		t.End(core.Failed{Fault: f})
		return f
	}
	undecided := len(t.pending)
	t.append(body, foreign)
	if len(t.pending) < undecided {
		t.store.host.Count("approval.gone_on")
	}
	switch b := body.(type) {
	case core.ApprovalRequested:
		t.awaitDecision(b.ID)
	case core.Usage:
		crossed = t.spend(b)
	}
	t.mu.Unlock()
	return nil
}

// checkWorker returns why the worker may not report on the task now. Callers hold mu.
func (t *Task) checkWorker(w Worker) error {
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

// Conclude ends the task as its agent says: Done or Cancelled. A Cancelled without a reason
// gets that of the cancel. It returns the errors of Report.
func (t *Task) Conclude(w Worker, now time.Time, body core.Body, foreign *core.Foreign) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkWorker(w); err != nil {
		return err
	}
	if c, ok := body.(core.Cancelled); ok && c.Reason == "" {
		body = core.Cancelled{Reason: t.reason}
	}
	t.appendAt(now, body, foreign)
	return nil
}

// Fail ends the task after its agent failed, or takes it from the agent and reports that
// another agent is to be tried, if the address allows it and there was no output. It returns
// the errors of Report.
func (t *Task) Fail(w Worker, failed core.Failed, foreign *core.Foreign) (again bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkWorker(w); err != nil {
		return false, err
	}
	if t.output || t.cancelling || !t.mayHaveAnother(failed.Fault) {
		t.append(failed, foreign)
		return false, nil
	}
	t.append(core.Retrying{Attempt: t.attempt, Agent: t.agent, Fault: failed.Fault}, foreign)
	t.detach(w, Agent)
	t.worker = nil
	t.limitTo(0)
	return true, nil
}

// mayHaveAnother reports whether another agent may have the task after a failure. Agents in order of preference
// are asked once each, also after one that lacks a login or a budget. Callers hold mu.
func (t *Task) mayHaveAnother(f *core.Fault) bool {
	switch t.request.To.Reach() {
	case core.ReachAgent:
		return false
	case core.ReachPreference:
		return f.Retryable || f.Code == core.CodeUnauthenticated || f.Code == core.CodeBudget
	}
	return f.Retryable && t.attempt <= t.store.limits.Retries
}

// Assignment gives a task to an agent.
type Assignment struct {
	Worker Worker
	Agent  core.AgentID
	// Dialect is that of the agent.
	Dialect string
	// MaxTaskTime is the maximum time of the agent; zero means until the deadline.
	MaxTaskTime time.Duration
	// ApprovalTimeout is how long a person may take to decide on a tool call of the agent, if that is
	// less than Limits.QuestionTimeout; zero means that.
	ApprovalTimeout time.Duration
	// History are the turns that the agent gets after those from the requester, Files the attachments after its own.
	History []core.Turn
	Files   []core.File
	// FilesOf are the tasks of Files, one each.
	FilesOf []core.TaskID
	// Branched says that the turns from which the thread branched are among its own by now: they do not come with the request.
	Branched bool
	// Handover says whose conversation it was; nil for nobody else's.
	Handover *core.Handover
}

// Assign gives the task to an agent. It reports false if the task has ended.
func (t *Task) Assign(a Assignment) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Ended {
		return false
	}
	t.worker = a.Worker
	t.decideIn = t.store.limits.QuestionTimeout
	if a.ApprovalTimeout > 0 {
		t.decideIn = min(t.decideIn, a.ApprovalTimeout)
	}
	if !t.IsNotice() {
		t.limitTo(a.MaxTaskTime)
	}
	if a.Branched {
		t.ownTurns = 0
	}
	if own := t.request.History[:t.ownTurns]; len(own) > 0 {
		t.request.History = slices.Concat(own, a.History)
	} else {
		t.request.History = a.History
	}
	t.handed, t.handedOf = a.Files, a.FilesOf
	t.attach(a.Worker, Agent, nil, t.last())
	t.append(core.Assigned{Agent: a.Agent, Attempt: t.attempt + 1, Dialect: a.Dialect, Handover: a.Handover}, nil)
	return true
}

// Gave returns the tasks whose turns an agent has got with this one, as far as that is sure and in memory: none if its
// transport has not taken it, and if it failed without output or with the agent itself.
func (t *Task) Gave(agent core.AgentID) (turns []core.TaskID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	failed, has := t.log.Last().Body.(core.Failed)
	if t.agent != agent || t.receipt.Stage < core.StageDelivered || has && (!t.output || failed.Fault.Code == core.CodeUnreachable) {
		return nil
	}
	for _, turn := range t.request.History {
		turns = append(turns, turn.Task)
	}
	return turns
}

// Delivered notes that the agent's transport accepted the assignment (promise P4).
func (t *Task) Delivered(w Worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.worker == w && t.receipt.Stage < core.StageDelivered {
		t.reach(core.StageDelivered, time.Now())
	}
}
