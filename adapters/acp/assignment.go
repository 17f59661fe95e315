package acp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// assignment is a task that the peer, as an agent, was given.
type assignment struct {
	id   string // of the envelope that gave it
	kind wire.Kind
	task core.TaskID
	// verbatim is set when the requester speaks ACP: the peer's envelopes reach it
	// unchanged.
	verbatim bool
	acked    bool
	// noReport is set when the peer need not send a result: its ack ends the task.
	noReport bool
	// sentUsage and sentText are set once progress brought usage or text.
	sentUsage, sentText bool
	cancelSent          bool         // the peer was sent a cancel
	cancelReason        string       // of that cancel
	endedByHub          bool         // the hub has ended the task, the peer perhaps not
	endedByPeer         bool         // the peer has ended the task
	pieces              agent.Pieces // of what came as progress
}

// agentSink sends the peer, as an agent, the events of a task that concern it.
type agentSink struct {
	ctx  context.Context //nolint:containedctx // an agentSink lives as long as one call of tellAgent
	s    *session
	task *task.Task
}

var _ core.AgentSink = agentSink{}

// tellAgent sends the peer the news of a task that it is assigned.
func (s *session) tellAgent(ctx context.Context, b hub.Batch) error {
	as := agentSink{ctx, s, b.Task}
	for _, e := range b.Events {
		if err := e.DeliverToAgent(as); err != nil {
			return err
		}
	}
	return nil
}

// Assigned implements core.AgentSink: the task is sent to the peer.
func (as agentSink) Assigned(_ core.Event, b core.Assigned) error {
	if b.Agent != as.s.peer.id {
		return nil
	}
	a := &assignment{task: as.task.ID(), verbatim: as.task.From().Dialect == Dialect}
	req := as.task.AgentRequest()
	m := as.s.encodeAssignment(as.task, req, a)
	if len(m.json) > as.s.opts.MaxEnvelopeBytes && len(req.Handed) > 0 {
		as.s.hub.Count("acp.folded.handed_files")
		m = as.s.encodeAssignment(as.task, req.WithoutHanded(), a)
	}
	if len(m.json) > as.s.opts.MaxEnvelopeBytes {
		fault := core.NewFault(core.CodeTooLarge, "the request has %d bytes as an ACP envelope, the limit is %d: send less, or a reference to it", len(m.json), as.s.opts.MaxEnvelopeBytes)
		as.s.report(a, core.Failed{Fault: fault}, nil)
		return nil
	}
	as.s.mu.Lock()
	as.s.assignments[a.id], as.s.byTask[a.task] = a, a
	if a.kind == wire.KindNotify {
		as.s.retire(a) // no answer is expected
	}
	as.s.mu.Unlock()
	if !a.kind.Passes() {
		m.sent = func() { as.s.self.Delivered(a.task) }
	}
	m.lost = func() {
		as.s.mu.Lock()
		as.s.retire(a) // the peer does not know of the task
		as.s.mu.Unlock()
		_ = as.s.self.Report(a.task, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "agent %s did not fetch what was sent to it", as.s.peer.id)}, nil)
	}
	return as.s.out.send(as.ctx, m)
}

// CancelRequested implements core.AgentSink.
func (as agentSink) CancelRequested(_ core.Event, b core.CancelRequested) error {
	as.s.mu.Lock()
	a := as.s.byTask[as.task.ID()]
	if a == nil || a.endedByPeer || a.endedByHub {
		as.s.mu.Unlock()
		return nil
	}
	if a.kind.Passes() {
		// The peer may never answer this kind: it need not stop anything.
		as.s.retire(a)
		as.s.mu.Unlock()
		as.s.report(a, core.Cancelled{Reason: b.Reason}, nil)
		return nil
	}
	as.s.mu.Unlock()
	return as.sendCancel(a, b.Reason)
}

// sendCancel asks the peer to stop, once.
func (as agentSink) sendCancel(a *assignment, reason string) error {
	e := as.s.newEnvelope(wire.KindCancel, a.id, wire.Cancel{Reason: reason})
	as.s.mu.Lock()
	again := a.cancelSent
	if !again {
		a.cancelSent, a.cancelReason, as.s.cancels[e.ID] = true, reason, a.id
	}
	as.s.mu.Unlock()
	if again {
		return nil
	}
	return as.s.out.send(as.ctx, message{json: e.Encode(), kind: wire.KindCancel, ref: a.id})
}

// Injected implements core.AgentSink: context is sent as a notify. ACP has no answer to
// it, so the injection counts as accepted once it was sent.
func (as agentSink) Injected(_ core.Event, b core.Injected) error {
	as.s.mu.Lock()
	a := as.s.byTask[as.task.ID()]
	over := a == nil || a.endedByPeer || a.endedByHub
	as.s.mu.Unlock()
	if over {
		return nil
	}
	importance := core.ImportanceMedium
	switch b.Priority {
	case core.InjectionImmediate:
		importance = core.ImportanceHigh
	case core.InjectionDeferred:
		importance = core.ImportanceLow
	}
	e := as.s.newEnvelope(wire.KindNotify, a.id, wire.Notify{
		Topic: wire.TopicContext, Importance: importance.String(),
		Data: wire.Marshal(wire.Context{Ref: a.id, ID: b.ID, Content: b.Content, Priority: b.Priority.String(), Source: b.Attribution()}),
	})
	raw := e.Encode()
	answer := func(accepted bool, reason string) {
		_ = as.s.self.Report(a.task, core.InjectionAnswered{ID: b.ID, Accepted: accepted, Reason: reason}, nil)
	}
	if len(raw) > as.s.opts.MaxEnvelopeBytes {
		answer(false, "too large for an ACP envelope")
		return nil
	}
	return as.s.out.send(as.ctx, message{
		json: raw, kind: wire.KindNotify, ref: a.id,
		sent: func() { answer(true, "") }, lost: func() { answer(false, "the agent did not fetch it") },
	})
}

// ApprovalDecided implements core.AgentSink. It does not occur: an approval_requested of
// an ACP agent is refused.
func (as agentSink) ApprovalDecided(core.Event, core.ApprovalDecided) error {
	as.s.hub.Count("acp.refused." + core.KindApprovalDecided.String())
	return nil
}

func (as agentSink) Done(_ core.Event, b core.Done) error           { return as.ended(b, "") }
func (as agentSink) Failed(_ core.Event, b core.Failed) error       { return as.ended(b, b.Fault.Message) }
func (as agentSink) Cancelled(_ core.Event, b core.Cancelled) error { return as.ended(b, b.Reason) }

// ended notes that the task has ended, and asks the peer to stop unless the peer ended it. A
// late answer still shows that the peer has room again.
func (as agentSink) ended(end core.Body, reason string) error {
	as.s.mu.Lock()
	a := as.s.byTask[as.task.ID()]
	if a == nil || a.endedByHub || a.endedByPeer {
		as.s.mu.Unlock()
		return nil
	}
	a.endedByHub = true
	as.s.remember(a)
	as.s.mu.Unlock()
	if end.Kind() == core.KindDone || a.kind.Passes() {
		return nil
	}
	as.s.hub.Count("acp.folded." + end.Kind().String())
	return as.sendCancel(a, reason)
}

// encodeAssignment returns the envelope that gives the peer a task, whose request for its agent is req, and
// fills in the assignment. A task that began as an ACP envelope is sent as that envelope.
func (s *session) encodeAssignment(t *task.Task, req core.Request, a *assignment) message {
	if raw := originOf(req); raw != nil {
		a.id, a.kind = wire.TextOf(raw, "id"), wire.KindOf(raw)
		a.noReport = a.kind == wire.KindDelegate && !req.ReportBack
		s.mu.Lock()
		taken := s.assignments[a.id] != nil
		s.mu.Unlock()
		out := wire.Readdress(raw, t.From().ID, string(s.peer.id), "")
		if taken {
			a.id = wire.NewID()
			out = wire.SetMembers(out, wire.Field{Key: "id", Value: wire.Marshal(a.id)})
		}
		if !a.kind.Passes() {
			out = s.withTrace(out, t)
		}
		return message{json: out, kind: a.kind}
	}
	now, history := time.Now(), req.History
	if req.History = nil; len(history) > 0 {
		req.History = []core.Turn{} // WithHistory fills it
	}
	var payload any
	switch req.Intent {
	case core.IntentDelegate:
		a.kind, payload = wire.KindDelegate, wire.DelegateOf(req, now)
	case core.IntentNotify:
		a.kind, payload = wire.KindNotify, wire.NotifyOf(*req.Notice)
	default:
		a.kind, payload = wire.KindQuery, wire.QueryOf(req, now)
	}
	e := s.newEnvelope(a.kind, "", payload)
	e.From = t.From().ID
	if a.kind == wire.KindNotify {
		e.ID = string(a.task) // the same on every delivery: see tellNotice
	}
	a.id = e.ID
	raw := e.Encode()
	if len(history) > 0 {
		raw = wire.WithHistory(raw, history)
	}
	return message{json: s.withTrace(raw, t), kind: a.kind}
}

// originOf returns the ACP envelope that a request began as, or nil.
func originOf(req core.Request) json.RawMessage {
	if f := req.Foreign; f == nil || f.Dialect != Dialect || !wire.IsObject(f.JSON) {
		return nil
	}
	return req.Foreign.JSON
}

// report reports an event of the peer to the hub, which counts the ones that it refuses.
func (s *session) report(a *assignment, body core.Body, raw []byte) {
	var foreign *core.Foreign
	if raw != nil && a.verbatim {
		foreign = &core.Foreign{Dialect: Dialect, JSON: raw}
	}
	if err := s.self.Report(a.task, body, foreign); err != nil {
		s.log.Debug("the hub refused a report", "task", a.task, "kind", body.Kind(), "why", err)
	}
}

// assigned returns the assignment with an id, or nil, and whether the peer has ended it.
func (s *session) assigned(id string) (a *assignment, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a = s.assignments[id]
	return a, a != nil && a.endedByPeer
}
