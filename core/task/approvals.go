package task

import (
	"cmp"
	"slices"
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
	if err := t.decide(d); err != nil {
		return err
	}
	if t.allowAll == "" {
		return nil
	}
	for _, held := range t.pendingApprovals() {
		if err := t.decide(t.allowed(held.ID)); err != nil {
			return err
		}
	}
	return nil
}

// approvals are the approvals of one task by the id of the tool call. Task.mu guards them.
type approvals struct {
	pending  map[string]*pendingCall
	decided  map[string]decidedCall
	allowAll string // the principal that approved all tools of the task
}

// pendingCall is a tool call without a decision.
type pendingCall struct {
	asked core.ApprovalRequested
	since time.Time
	timer *time.Timer
	// changed says that the agent asked for another input under the same id before: then a
	// decision must say which one it is for.
	changed bool
}

// decidedCall is the decision on a tool call with an input, which its SHA-256 names.
type decidedCall struct {
	core.ApprovalDecided
	input string
}

// stop drops all pending approvals. Callers hold mu.
func (a *approvals) stop() {
	for _, p := range a.pending {
		p.timer.Stop()
	}
	clear(a.pending)
}

// pendingApprovals is Approvals. Callers hold mu.
func (t *Task) pendingApprovals() []PendingApproval {
	all := make([]PendingApproval, 0, len(t.pending))
	for id, p := range t.pending {
		all = append(all, PendingApproval{
			Task: t.id, Thread: t.request.Thread, ID: id, Name: p.asked.Name, Input: p.asked.Input, InputSHA256: p.asked.InputSHA256, Agent: t.agent, From: t.from,
			Since: p.since, Until: p.since.Add(t.decideIn),
		})
	}
	slices.SortFunc(all, func(a, b PendingApproval) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return all
}

// allowed returns the decision on a call in a task all of whose tools were approved.
func (t *Task) allowed(id string) core.ApprovalDecided {
	return core.ApprovalDecided{ID: id, Approved: true, All: true, By: t.allowAll, InputSHA256: t.pending[id].asked.InputSHA256, Reason: "all tools of the task were approved"}
}

// awaitDecision adds a pending approval; one with another input takes the place of that with
// the same id. Some agents ask again although all tools were approved: then the hub decides
// in the name of the principal that did. Callers hold mu.
func (t *Task) awaitDecision(a core.ApprovalRequested) {
	if t.pending == nil {
		t.pending, t.decided = map[string]*pendingCall{}, map[string]decidedCall{}
	}
	p := &pendingCall{asked: a, since: time.Now()}
	if earlier := t.pending[a.ID]; earlier != nil {
		if earlier.asked.InputSHA256 == a.InputSHA256 {
			return
		}
		earlier.timer.Stop()
		p.changed = true
	}
	if earlier, ok := t.decided[a.ID]; ok && earlier.input != a.InputSHA256 {
		p.changed = true
	}
	delete(t.decided, a.ID)
	p.timer = time.AfterFunc(t.decideIn, func() { t.denyAfterTimeout(p) })
	t.pending[a.ID] = p
	if t.allowAll != "" {
		_ = t.decide(t.allowed(a.ID)) // it is pending, so there is no error
	}
}

// proceeded drops the pending approval of a call that its agent continued or gave up
// without a decision. Callers hold mu.
func (t *Task) proceeded(id string) {
	if p := t.pending[id]; p != nil {
		p.timer.Stop()
		delete(t.pending, id)
		t.decided[id] = decidedCall{core.ApprovalDecided{ID: id}, p.asked.InputSHA256} // by nobody
		t.store.host.Count("approval.gone_on")
	}
}

// denyAfterTimeout denies a call without a decision in time. Since the hub denies it, it
// also reports the state of the tool (Fold enhancements, section 2).
func (t *Task) denyAfterTimeout(p *pendingCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[p.asked.ID] != p {
		return // it was decided meanwhile, and perhaps asked again
	}
	why := "nobody decided within " + t.decideIn.String()
	if t.decide(core.ApprovalDecided{ID: p.asked.ID, By: hubName, Reason: why}) == nil {
		t.append(core.ToolState{ID: p.asked.ID, State: core.ToolDenied, Detail: why}, nil)
	}
}

// hubName stands for the hub where a principal decides.
const hubName = "hub"

// decide decides one approval. Callers hold mu.
func (t *Task) decide(d core.ApprovalDecided) error {
	if err := t.mayDecide(d); err != nil || t.remote {
		return err
	}
	p := t.pending[d.ID]
	d.InputSHA256 = p.asked.InputSHA256
	p.timer.Stop()
	delete(t.pending, d.ID)
	t.decided[d.ID] = decidedCall{d, p.asked.InputSHA256}
	if d.Approved && d.All {
		t.allowAll = d.By
	}
	t.append(d, nil)
	t.noteWaits()
	return nil
}

// mayDecide returns why a decision does not count, nil if it does. Callers hold mu.
func (t *Task) mayDecide(d core.ApprovalDecided) error {
	p := t.pending[d.ID]
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
	case p == nil && t.remote:
		return nil // the owner may have it already, and says so if it does not
	case p == nil:
		return core.NewFault(core.CodeInvalid, "task %s has no pending approval %q", t.id, d.ID)
	case d.InputSHA256 != "" && d.InputSHA256 != p.asked.InputSHA256:
		return core.NewFault(core.CodeConflict, "%q now waits with another input, of SHA-256 %s: read it and decide again", d.ID, p.asked.InputSHA256)
	case d.InputSHA256 == "" && p.changed && d.By != hubName:
		return core.NewFault(core.CodeConflict, "the input of %q has changed: read it and decide with its input_sha256, %s", d.ID, p.asked.InputSHA256)
	}
	return nil
}
