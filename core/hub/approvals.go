package hub

import (
	"cmp"
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Decide answers an approval that the agent of a task waits for; with All also those to
// come in the task. The first decision counts: it returns a conflict Fault that says what
// was decided before, and an invalid Fault for an approval that was not requested. It waits for the
// hub that has the task, for 2 s at most, unless this one [Hub.Holds] it. With [NoWait] the decision is
// passed on, and nobody is told if that hub refuses it.
func (s *Session) Decide(ctx context.Context, id core.TaskID, d core.ApprovalDecided) error {
	return s.Do(ctx, core.Decide{Task: id, Decision: d})
}

// Approvals returns the pending approvals of all hubs that the principal may decide, the longest
// waiting first, and the hubs that are missing. It may wait for the other hubs.
func (h *Hub) Approvals(ctx context.Context, p core.Principal) (all []task.PendingApproval, missing []string) {
	all = []task.PendingApproval{}
	_ = h.list(p, core.ListApprovals, func() error { // without the right the list is empty
		var answers []rpc.Answered[[]task.PendingApproval]
		all = h.approvals(p)
		answers, missing = approvalsMethod.AskAll(ctx, h, p, struct{}{})
		for _, a := range answers {
			all = append(all, a.Out...)
		}
		return nil
	})
	sortApprovals(all)
	return all, missing
}

// ApprovalsHere is [Hub.Approvals] for the tasks of this hub alone. It does not wait.
func (h *Hub) ApprovalsHere(p core.Principal) []task.PendingApproval {
	all := []task.PendingApproval{}
	_ = h.list(p, core.ListApprovals, func() error {
		all = h.approvals(p)
		return nil
	})
	sortApprovals(all)
	return all
}

// approvalsMethod asks a hub for the pending approvals of its tasks that a principal may decide.
const approvalsMethod rpc.Method[struct{}, []task.PendingApproval] = "approvals"

// approvals returns the pending approvals of the tasks that this hub owns, in no order.
func (h *Hub) approvals(p core.Principal) []task.PendingApproval {
	all := []task.PendingApproval{}
	for _, t := range h.tasks.InMemory() {
		if !t.IsRemote() && h.MayDecide(p, t) {
			all = append(all, t.Approvals()...)
		}
	}
	return all
}

func sortApprovals(all []task.PendingApproval) {
	slices.SortFunc(all, func(a, b task.PendingApproval) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Task, b.Task), cmp.Compare(a.ID, b.ID))
	})
}
