package task

import (
	"cmp"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// PendingApproval is a tool call that waits for a person to decide. Its task and
// its ID name it.
type PendingApproval struct {
	Task core.TaskID `json:"task"`
	// ID, Name and Input are those of the tool call, as the agent told them.
	ID    string       `json:"id"`
	Name  string       `json:"name"`
	Input string       `json:"input"`
	Agent core.AgentID `json:"agent"`
	// From is who asked for what the agent works on.
	From core.Principal `json:"from"`
	// Since is when the agent asked, Until when the hub denies it.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// Approvals returns what the task waits for, the longest waiting first.
func (t *Task) Approvals() []PendingApproval {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pendingApprovals()
}

// Decide answers an approval that the agent waits for, or with All every one that it
// waits for and will wait for in the task. The first answer counts: a later one is a
// conflict Fault that says what was decided, one that nobody asked for an invalid Fault.
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

// approvals are those of one task, by the id of the tool call. Task.mu guards them.
type approvals struct {
	pending  map[string]*pendingCall
	decided  map[string]core.ApprovalDecided
	allowAll string // who approved all the tools of the task
}

// pendingCall is a tool call that nobody has decided on yet.
type pendingCall struct {
	asked core.ApprovalRequested
	since time.Time
	timer *time.Timer
}

// stop ends the waiting of all. Callers hold mu.
func (a *approvals) stop() {
	for _, p := range a.pending {
		p.timer.Stop()
	}
	clear(a.pending)
}

// pendingApprovals returns what waits, in order. Callers hold mu.
func (t *Task) pendingApprovals() []PendingApproval {
	all := make([]PendingApproval, 0, len(t.pending))
	for id, p := range t.pending {
		all = append(all, PendingApproval{
			Task: t.id, ID: id, Name: p.asked.Name, Input: p.asked.Input, Agent: t.agent, From: t.from,
			Since: p.since, Until: p.since.Add(t.store.limits.ApprovalTimeout),
		})
	}
	slices.SortFunc(all, func(a, b PendingApproval) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return all
}

// allowed is the decision on a call of a task all of whose tools were approved.
func (t *Task) allowed(id string) core.ApprovalDecided {
	return core.ApprovalDecided{ID: id, Approved: true, All: true, By: t.allowAll, Reason: "all tools of the task were approved"}
}

// await begins to wait for a decision. Agents are known to ask again although all
// was approved: the hub answers for whoever did. Callers hold mu.
func (t *Task) await(a core.ApprovalRequested) {
	if t.pending == nil {
		t.pending, t.decided = map[string]*pendingCall{}, map[string]core.ApprovalDecided{}
	}
	if t.pending[a.ID] != nil {
		return
	}
	delete(t.decided, a.ID)
	p := &pendingCall{asked: a, since: time.Now()}
	p.timer = time.AfterFunc(t.store.limits.ApprovalTimeout, func() { t.undecided(p) })
	t.pending[a.ID] = p
	if t.allowAll != "" {
		_ = t.decide(t.allowed(a.ID)) // it waits since just now
	}
}

// proceeded stops waiting for a decision on a call that its agent went on with, or gave
// up, without one: there is nobody left to tell. Callers hold mu.
func (t *Task) proceeded(id string) {
	if p := t.pending[id]; p != nil {
		p.timer.Stop()
		delete(t.pending, id)
		t.decided[id] = core.ApprovalDecided{ID: id} // by nobody
		t.store.host.Count("approval.gone_on")
	}
}

// undecided denies a call on which nobody decided in time. It is the hub that
// denies, so it also says where that leaves the tool (Fold enhancements, section 2).
func (t *Task) undecided(p *pendingCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[p.asked.ID] != p {
		return // decided in this moment, and perhaps asked again
	}
	why := "nobody decided within " + t.store.limits.ApprovalTimeout.String()
	if t.decide(core.ApprovalDecided{ID: p.asked.ID, By: "hub", Reason: why}) == nil {
		t.append(core.ToolState{ID: p.asked.ID, State: core.ToolDenied, Detail: why}, nil)
	}
}

// decide settles an approval. Callers hold mu.
func (t *Task) decide(d core.ApprovalDecided) error {
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
	case p == nil:
		return core.NewFault(core.CodeInvalid, "task %s waits for no approval of %q", t.id, d.ID)
	}
	p.timer.Stop()
	delete(t.pending, d.ID)
	t.decided[d.ID] = d
	if d.Approved && d.All {
		t.allowAll = d.By
	}
	t.append(d, nil)
	return nil
}
