package hub

import (
	"cmp"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Cancel asks that a task be stopped. Its agent is told if it can be; the task
// ends when the agent says so or its grace is over, at once when the agent cannot
// be told. It returns an unknown_task or not_authorized Fault, or a conflict Fault
// when the task has ended.
func (s *Session) Cancel(id core.TaskID, reason string) error {
	_, err := s.do(core.Cancel{Task: id, Reason: reason})
	return err
}

// Inject pushes context to the agent of a task while it works. The answer comes
// as an event. It returns an unsupported Fault when the agent takes none, a too_large
// Fault for more than the task has room for, and a conflict Fault when no agent works
// on the task now.
func (s *Session) Inject(id core.TaskID, in core.Injected) error {
	_, err := s.do(core.Inject{Task: id, Context: in})
	return err
}

// inject pushes context to the agent of a task.
func inject(t *task.Task, in core.Injected) error {
	if in.ID == "" {
		in.ID = core.NewID()
	}
	if in.Priority == 0 {
		in.Priority = core.InjectionNormal
	}
	return t.Inject(in)
}

// Decide answers an approval that the agent of a task waits for, or with All every
// one that it waits for and will wait for in the task. The first answer counts: a
// later one is a conflict Fault that says what was decided, one that nobody asked
// for an invalid Fault.
func (s *Session) Decide(id core.TaskID, d core.ApprovalDecided) error {
	_, err := s.do(core.Decide{Task: id, Decision: d})
	return err
}

// Approvals returns what waits for a decision that the principal may take, the
// longest waiting first.
func (h *Hub) Approvals(p core.Principal) []task.PendingApproval {
	all := []task.PendingApproval{}
	_ = h.list(p, core.ListApprovals, func() error { // who may not see any sees none
		for _, t := range h.tasks.InMemory() {
			if h.mayRead(p, t.From()) {
				all = append(all, t.Approvals()...)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b task.PendingApproval) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Task, b.Task), cmp.Compare(a.ID, b.ID))
	})
	return all
}
