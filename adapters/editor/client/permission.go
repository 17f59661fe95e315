package client

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
)

// permission is an open session/request_permission.
type permission struct {
	id    json.RawMessage // of the request
	req   wire.PermissionRequest
	input string // that people are shown
}

// maxPermits bounds the open permission requests of a turn. Further ones are answered cancelled.
const maxPermits = 64

// request handles a request of the agent in the turn.
func (t *turn) request(ctx context.Context, m jsonrpc.Message) {
	if t.isCancelling() || t.muted != nil {
		_ = t.conn.answerCancelled(ctx, m)
		return
	}
	if m.Method == wire.MethodElicitationCreate {
		t.elicit(ctx, m)
		return
	}
	p, fault := wire.Read[wire.PermissionRequest](m.Params)
	if fault != nil {
		t.conn.settled(m.ID)
		_ = t.conn.refuse(ctx, m.ID, fault)
		return
	}
	tl := t.toolOf(p.ToolCall.ToolCallID)
	if tl == nil {
		tl = &tool{id: p.ToolCall.ToolCallID}
	}
	tl.merge(p.ToolCall)
	if asks := userQuestions(&p); asks != nil {
		t.tell(tl, tl.shown())
		t.askPeople(ctx, &pending{message: m, put: func(ctx context.Context) (any, error) { return t.putAll(ctx, &p, asks) }})
		return
	}
	approval, ok := t.hold(tl.id, &permission{m.ID, p, tl.shown()})
	if !ok {
		t.conn.opts.Count("editor.too_many_permissions")
		_ = t.conn.answerCancelled(ctx, m)
		return
	}
	t.tell(tl, tl.shown())
	t.report(core.ApprovalRequested{ID: approval, Name: tl.label(), Input: tl.shown()}, wire.Rest(m.Params, "sessionId"))
}

// hold keeps an open permission under the id of its approval: that of the tool call, with a
// number if that is taken. It fails if there are too many, or the turn is being cancelled.
func (t *turn) hold(toolID string, p *permission) (approval string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.permits) >= maxPermits || t.cancelling {
		return "", false
	}
	approval = toolID
	for n := 2; t.permits[approval] != nil; n++ {
		approval = toolID + "#" + strconv.Itoa(n)
	}
	t.permits[approval] = p
	return approval, true
}

// release returns the open permission that a decision is on and forgets it; nil if there is none.
// The agent may have asked again for the same call, with another input, before it came.
func (t *turn) release(d core.ApprovalDecided) *permission {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.permits[d.ID]
	if p == nil || !d.IsFor(p.input) {
		return nil
	}
	delete(t.permits, d.ID)
	return p
}

// decide answers a permission request with the option that was chosen, else with the one that is
// nearest to the decision: to allow once unless all calls were approved, and to reject once.
func (t *turn) decide(ctx context.Context, d core.ApprovalDecided) {
	p := t.release(d)
	if p == nil {
		return // withdrawn, cancelled with the turn, or on an earlier input
	}
	kinds := []string{wire.RejectOnce, wire.RejectAlways}
	switch {
	case d.Approved && d.All:
		kinds = []string{wire.AllowAlways, wire.AllowOnce}
	case d.Approved:
		kinds = []string{wire.AllowOnce, wire.AllowAlways}
	case d.All:
		kinds = []string{wire.RejectAlways, wire.RejectOnce}
	}
	outcome := wire.PermissionOutcome{Outcome: wire.OutcomeCancelled}
	if o, ok := p.option(d, kinds); ok {
		outcome = wire.PermissionOutcome{Outcome: wire.OutcomeSelected, OptionID: o.OptionID}
	} else {
		t.conn.opts.Count("editor.no_such_option")
	}
	t.conn.settled(p.id)
	_ = t.conn.answer(t.frames.Telling(ctx, core.KindApprovalDecided), p.id, wire.PermissionResponse{Outcome: outcome})
}

// option returns the option that was chosen, where the dialect of who decided shows options and the
// option does not contradict the decision, else the first of the kinds.
func (p *permission) option(d core.ApprovalDecided, kinds []string) (wire.PermissionOption, bool) {
	for _, o := range p.req.Options {
		allows := o.Kind == wire.AllowOnce || o.Kind == wire.AllowAlways
		if d.Option != "" && o.OptionID == d.Option && allows == d.Approved {
			return o, true
		}
	}
	return p.req.Option(kinds...)
}

// cancelPermits answers every open permission request of a turn that is cancelled or over.
func (t *turn) cancelPermits(ctx context.Context) {
	t.mu.Lock()
	open := t.permits
	t.permits = map[string]*permission{}
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	for _, p := range open {
		_ = t.conn.answerCancelled(ctx, jsonrpc.Message{ID: p.id, Method: wire.MethodSessionRequestPermission})
	}
}

// withdraw answers a request that the agent does not want answered any more ($/cancel_request).
func (t *turn) withdraw(ctx context.Context, id string) {
	if t.ask.withdraw(id) {
		return
	}
	t.mu.Lock()
	approval := ""
	for a, p := range t.permits {
		if string(p.id) == id {
			approval = a
		}
	}
	t.mu.Unlock()
	p := t.release(core.ApprovalDecided{ID: approval})
	if p == nil {
		return
	}
	t.conn.settled(p.id)
	_ = t.conn.refuse(ctx, p.id, jsonrpc.Errorf(wire.CodeRequestCancelled, "the request was cancelled"))
	t.report(core.ToolState{ID: approval, State: core.ToolCancelled, Detail: "the agent withdrew its request"}, wire.Told())
}
