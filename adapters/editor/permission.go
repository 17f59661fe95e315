package editor

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// asked is a request to the editor without an answer: for a permission or, with a question,
// for an answer to it.
type asked struct {
	id       string // the JSON text
	task     core.TaskID
	approval string                  // the id of the tool call
	input    string                  // the SHA-256 of its input
	options  []wire.PermissionOption // of a permission
	offered  bool                    // the agent has offered them
	question string                  // the id of the question, or ""
	choices  bool                    // it has options
	form     *question.Form          // its own form, which the editor shows; nil for one with an answerField
}

// request sends the editor a request.
func (c *connection) request(ctx context.Context, a *asked, method string, params json.RawMessage) error {
	c.mu.Lock()
	c.lastID++
	id := jsonrpc.NumberID(c.lastID)
	a.id = string(id)
	c.asked[a.id] = a
	c.mu.Unlock()
	return c.send(ctx, jsonrpc.AppendRequest(nil, id, method, params))
}

// withdraw ends requests that need no answer any more.
func (c *connection) withdraw(ctx context.Context, which func(*asked) bool) error {
	c.mu.Lock()
	var ids []string
	for id, a := range c.asked {
		if which(a) {
			delete(c.asked, id)
			ids = append(ids, id)
		}
	}
	c.mu.Unlock()
	for _, id := range ids {
		params := strictjson.Encode(wire.CancelRequest{RequestID: json.RawMessage(id)})
		if err := c.send(ctx, jsonrpc.AppendNotification(nil, wire.MethodCancelRequest, params)); err != nil {
			return err
		}
	}
	return nil
}

// answered handles a response of the editor. One to a request that was withdrawn comes late.
func (c *connection) answered(m jsonrpc.Message) {
	c.mu.Lock()
	a := c.asked[string(m.ID)]
	delete(c.asked, string(m.ID))
	c.mu.Unlock()
	switch {
	case a == nil:
		c.count("late.response")
	case m.Err != nil:
		c.count("refused.response")
		c.log.Info("an editor cannot ask its user: somebody else at the hub can answer (dragoman approvals, dragoman questions)",
			"task", a.task, "error", m.Err)
	case a.question != "":
		c.settleQuestion(a, m)
	default:
		c.settlePermission(a, m)
	}
}

// The options of a permission, unless the agent has some of its own. Those of an agent that is
// no editor agent hold for the turn.
var options = []wire.PermissionOption{
	{OptionID: wire.AllowOnce, Name: "Allow", Kind: wire.AllowOnce},
	{OptionID: wire.AllowAlways, Name: "Allow all in this turn", Kind: wire.AllowAlways},
	{OptionID: wire.RejectOnce, Name: "Reject", Kind: wire.RejectOnce},
}

// ApprovalRequested asks the user for a decision, if the user may decide.
func (t *turn) ApprovalRequested(e core.Event, b core.ApprovalRequested) error {
	c := t.conv.c
	if t.replayed {
		return t.failure
	}
	if !c.hub.MayDecide(c.opts.Principal, t.task) {
		return t.fold(e.Body.Kind(), "%s waits for somebody to approve %s", t.task.Agent(), b.Name)
	}
	// What an editor agent asked stays as it is, with the title that the hub knows. Its input is in there
	// or was told with the call: what the approval has may stand for one that the agent does not tell.
	_, theirs, _ := wire.OfForeign(e.Foreign)
	call := wire.ToolCall{ToolCallID: b.ID, Title: visible.Line(b.Name)}
	if !strictjson.ParseValid(theirs).Get("toolCall").Exists() {
		call.RawInput = asJSON(b.Input)
	}
	if _, known := t.tools[b.ID]; !known {
		t.tools[b.ID] = struct{}{}
		call.Status = wire.ToolPending
	}
	if err := t.withdraw(b.ID); err != nil { // it may ask again with another input
		return err
	}
	a := &asked{task: t.task.ID(), approval: b.ID, input: b.InputSHA256, options: options}
	var own []wire.PermissionOption
	if strictjson.ParseValid(theirs).Get("options").Decode(&own) == nil && len(own) > 0 {
		a.options, a.offered = own, true
	}
	params := strictjson.Encode(wire.PermissionRequest{SessionID: string(t.conv.id), ToolCall: call, Options: a.options})
	if theirs != nil {
		params = wire.Restore(theirs, params)
	}
	return c.request(t.ctx, a, wire.MethodSessionRequestPermission, params)
}

// settlePermission decides as the user has selected. Without a selection the user has closed the
// question: that is a denial, unless the turn was cancelled.
func (c *connection) settlePermission(a *asked, m jsonrpc.Message) {
	r, fault := wire.Read[wire.PermissionResponse](m.Result)
	d := core.ApprovalDecided{ID: a.approval, InputSHA256: a.input}
	switch {
	case fault != nil:
		c.count("refused.response")
		d.Reason = "the editor answered what is no decision: " + fault.Message
	case r.Outcome.Outcome == wire.OutcomeCancelled:
		if c.isCancelled(a.task) {
			return
		}
		d.Reason = "closed without a decision"
	default:
		i := slices.IndexFunc(a.options, func(o wire.PermissionOption) bool { return o.OptionID == r.Outcome.OptionID })
		if i < 0 {
			d.Reason = "the editor selected an option that was not offered"
			break
		}
		o := a.options[i]
		d.Approved, d.All = o.Kind == wire.AllowOnce || o.Kind == wire.AllowAlways, o.Kind == wire.AllowAlways
		if a.offered {
			d.Option = o.OptionID
		}
	}
	if err := c.self.Decide(hub.NoWait, a.task, d); err != nil {
		c.log.Debug("a decision came too late", "task", a.task, "error", err)
	}
}

// isCancelled reports whether the editor has cancelled the prompt of a task.
func (c *connection) isCancelled(id core.TaskID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conv := range c.conversations {
		for p := range conv.open {
			if p.task == id {
				return p.cancelled
			}
		}
	}
	return false
}

// ApprovalDecided closes the question at the user if somebody else has decided.
func (t *turn) ApprovalDecided(_ core.Event, b core.ApprovalDecided) error {
	return t.withdraw(b.ID)
}

// withdraw closes the question on a tool call.
func (t *turn) withdraw(call string) error {
	return t.conv.c.withdraw(t.ctx, func(a *asked) bool { return a.task == t.task.ID() && a.question == "" && a.approval == call })
}

// withdrawDecided closes the question at the user if the agent goes on without a decision.
func (t *turn) withdrawDecided(b core.ToolState) error {
	if b.State < core.ToolRunning {
		return nil
	}
	return t.withdraw(b.ID)
}
