package rest

import (
	"net/http"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// getApprovals lists the tool calls that the sender may decide on.
func (a *api) getApprovals(c call) error {
	all, missing := a.hub.Approvals(c.r.Context(), c.from)
	return a.reply(c.w, http.StatusOK, struct {
		Approvals []task.PendingApproval `json:"approvals"`
		Missing   []string               `json:"missing,omitempty"`
	}{all, missing})
}

// decideBody is the body of POST /v1/tasks/{id}/decisions.
type decideBody struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved"`
	All      bool   `json:"all"`
	Reason   string `json:"reason"`
	Option   string `json:"option"`
	// InputSHA256 is that of the input which was decided on; "" leaves it unsaid.
	InputSHA256 string `json:"input_sha256"`
}

func (a *api) postDecision(c call) error {
	var body decideBody
	if err := a.read(c, &body); err != nil {
		return err
	}
	switch {
	case body.ID == "":
		return core.NewFault(core.CodeInvalid, "id: missing; send the id of the approval_requested event")
	case body.Approved == nil:
		return core.NewFault(core.CodeInvalid, "approved: missing; send true or false")
	case body.All && !*body.Approved:
		return core.NewFault(core.CodeInvalid, "all: it approves all calls, and approved is false; leave it out, or cancel the task")
	}
	d := core.ApprovalDecided{ID: body.ID, Approved: *body.Approved, All: body.All, By: c.from.ID, Reason: body.Reason, Option: body.Option, InputSHA256: body.InputSHA256}
	if err := a.steer(c, core.Decide{Task: core.TaskID(c.id()), Decision: d}); err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, d)
}
