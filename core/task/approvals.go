package task

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// PendingApproval is a tool call that waits for a person's decision. Task and ID identify
// it.
type PendingApproval struct {
	Task   core.TaskID   `json:"task"`
	Thread core.ThreadID `json:"thread"`
	// ID, Name and Input are those of the tool call, as the agent sent them.
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"`
	// InputSHA256 is the SHA-256 of Input in hexadecimal digits, for the decision.
	InputSHA256 string       `json:"input_sha256"`
	Agent       core.AgentID `json:"agent"`
	// From is the requester of the task.
	From core.Principal `json:"from"`
	// Since is when the agent asked for approval, Until when the hub denies it.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// Approvals returns the approvals that are pending, oldest first.
func (t *Task) Approvals() []PendingApproval {
	t.mu.Lock()
	all := t.pendingApprovals()
	t.mu.Unlock()
	for i := range all {
		all[i].Input = t.redactor().Input(all[i].Input)
	}
	return all
}

// Decide decides a pending approval, or with All every pending and future one of the task.
// The first decision counts: a later one returns a conflict Fault that says what was
// decided, as does one for another input than the agent asks for now. If the agent did not
// ask, it returns an invalid Fault.
func (t *Task) Decide(d core.ApprovalDecided) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.mayDecide(d); err != nil || t.remote {
		return err
	}
	d.InputSHA256 = t.pending[d.ID].asked.InputSHA256
	t.append(d, nil)
	if t.allowAll != "" {
		for _, p := range t.inOrder() {
			t.allow(p.asked.ID)
		}
	}
	return nil
}

// pendingApprovals is Approvals. Callers hold mu.
func (t *Task) pendingApprovals() []PendingApproval {
	all := make([]PendingApproval, 0, len(t.pending))
	for _, p := range t.inOrder() {
		all = append(all, PendingApproval{
			Task: t.id, Thread: t.request.Thread, ID: p.asked.ID, Name: p.asked.Name, Input: p.asked.Input, InputSHA256: p.asked.InputSHA256, Agent: t.agent, From: t.from,
			Since: p.since, Until: p.since.Add(t.decideIn),
		})
	}
	return all
}

// awaitDecision has the hub deny a call without a decision in time. Some agents ask again although all tools were
// approved: then the hub decides in the name of the principal that did. Callers hold mu.
func (t *Task) awaitDecision(id string) {
	if t.allowAll != "" {
		t.allow(id)
		return
	}
	t.rearm()
}

// allow approves a call in a task all of whose tools were approved. Callers hold mu.
func (t *Task) allow(id string) {
	if p, pending := t.pending[id]; pending {
		t.append(core.ApprovalDecided{ID: id, Approved: true, All: true, By: t.allowAll, InputSHA256: p.asked.InputSHA256, Reason: "all tools of the task were approved"}, nil)
	}
}

// denyOverdue denies the calls without a decision in time. Since the hub denies them, it also reports the state of
// the tool (Fold enhancements, section 2). Callers hold mu.
func (t *Task) denyOverdue(now time.Time) {
	for _, p := range t.inOrder() {
		if p.since.Add(t.decideIn).After(now) {
			continue
		}
		why := "nobody decided within " + t.decideIn.String()
		t.append(core.ApprovalDecided{ID: p.asked.ID, By: hubName, Reason: why, InputSHA256: p.asked.InputSHA256}, nil)
		t.append(core.ToolState{ID: p.asked.ID, State: core.ToolDenied, Detail: why}, nil)
	}
}

// hubName stands for the hub where a principal decides.
const hubName = "hub"

// mayDecide returns why a decision does not count, nil if it does. Callers hold mu.
func (t *Task) mayDecide(d core.ApprovalDecided) error {
	p, pending := t.pending[d.ID]
	before, decided := t.decided[d.ID]
	switch {
	case t.state == Ended:
		return core.NewFault(core.CodeConflict, "task %s has ended", t.id)
	case decided && before.By == "":
		return core.NewFault(core.CodeConflict, "agent %s went on without a decision on %q", t.agent, d.ID)
	case decided && before.Approved:
		return core.NewFault(core.CodeConflict, "%q was decided before: approved by %s", d.ID, before.By)
	case decided:
		return core.NewFault(core.CodeConflict, "%q was decided before: denied by %s", d.ID, before.By)
	case !pending && t.remote:
		return nil // the owner may have it already, and says so if it does not
	case !pending:
		return core.NewFault(core.CodeInvalid, "task %s has no pending approval %q", t.id, d.ID)
	case d.InputSHA256 != "" && d.InputSHA256 != p.asked.InputSHA256:
		return core.NewFault(core.CodeConflict, "%q now waits with another input, of SHA-256 %s: read it and decide again", d.ID, p.asked.InputSHA256)
	case d.InputSHA256 == "" && p.changed:
		return core.NewFault(core.CodeConflict, "the input of %q has changed: read it and decide with its input_sha256, %s", d.ID, p.asked.InputSHA256)
	}
	return nil
}
