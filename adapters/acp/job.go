package acp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// job is a task that the peer works on.
type job struct {
	id   string // of the envelope that it got
	kind wire.Kind
	task core.TaskID
	// passes says that the requester speaks ACP, so that the peer's envelopes reach
	// it as they are.
	passes bool
	acked  bool
	// silent says that the peer was asked for no report: it ends the job with its ack.
	silent bool
	// usage and text say that it told what it costs, and pieces of its answer, on the
	// way.
	usage, text bool
	stopped     bool // it was sent a cancel
	over        bool // the hub has ended it, and it is not known that the peer has
	ended       bool // the peer has ended it
}

// worker gives the peer, as an agent, the events of a task that are for it.
type worker struct {
	ctx  context.Context //nolint:containedctx // a worker lives as long as one call of work
	s    *session
	task *task.Task
}

var _ core.AgentSink = worker{}

// work passes on what is news for the agent that the peer is.
func (s *session) work(ctx context.Context, b hub.Batch) error {
	w := worker{ctx, s, b.Task}
	for _, e := range b.Events {
		if err := e.DeliverToAgent(w); err != nil {
			return err
		}
	}
	return nil
}

// Assigned implements core.AgentSink: the peer gets the task.
func (w worker) Assigned(_ core.Event, b core.Assigned) error {
	if b.Agent != w.s.peer.id {
		return nil
	}
	j := &job{task: w.task.ID(), passes: w.task.From().Dialect == Dialect}
	m := w.s.assignment(w.task, j)
	if len(m.json) > w.s.opts.MaxEnvelopeBytes {
		fault := core.NewFault(core.CodeTooLarge, "the request has %d bytes as an ACP envelope, the limit is %d: send less, or a reference to it", len(m.json), w.s.opts.MaxEnvelopeBytes)
		w.s.report(j, core.Failed{Fault: fault}, nil)
		return nil
	}
	w.s.mu.Lock()
	w.s.jobs[j.id], w.s.byTask[j.task] = j, j
	if j.kind == wire.KindNotify {
		w.s.retire(j) // nothing is expected back
	}
	w.s.mu.Unlock()
	if !j.kind.Passes() {
		m.sent = func() { w.s.self.Delivered(j.task) }
	}
	m.lost = func() {
		w.s.mu.Lock()
		w.s.retire(j) // it knows of nothing that it could stop
		w.s.mu.Unlock()
		_ = w.s.self.Report(j.task, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "agent %s did not fetch what was sent to it", w.s.peer.id)}, nil)
	}
	return w.s.out.send(w.ctx, m)
}

// CancelRequested implements core.AgentSink.
func (w worker) CancelRequested(_ core.Event, b core.CancelRequested) error {
	w.s.mu.Lock()
	j := w.s.byTask[w.task.ID()]
	if j == nil || j.ended || j.over {
		w.s.mu.Unlock()
		return nil
	}
	if j.kind.Passes() {
		// The peer may never have meant to answer: nothing is asked of it.
		w.s.retire(j)
		w.s.mu.Unlock()
		w.s.report(j, core.Cancelled{Reason: b.Reason}, nil)
		return nil
	}
	w.s.mu.Unlock()
	return w.stop(j, b.Reason)
}

// stop asks the peer to end a job, once.
func (w worker) stop(j *job, reason string) error {
	e := w.s.newEnvelope(wire.KindCancel, j.id, wire.Cancel{Reason: reason})
	w.s.mu.Lock()
	again := j.stopped
	if !again {
		j.stopped, w.s.cancels[e.ID] = true, j.id
	}
	w.s.mu.Unlock()
	if again {
		return nil
	}
	return w.s.out.send(w.ctx, message{json: e.Encode(), kind: wire.KindCancel, ref: j.id})
}

// Injected implements core.AgentSink: context travels as a notify. ACP has no word for
// what the agent makes of it, so that what is answered is that it was sent.
func (w worker) Injected(_ core.Event, b core.Injected) error {
	w.s.mu.Lock()
	j := w.s.byTask[w.task.ID()]
	w.s.mu.Unlock()
	if j == nil || j.ended || j.over {
		return nil
	}
	importance := core.ImportanceMedium
	switch b.Priority {
	case core.InjectionImmediate:
		importance = core.ImportanceHigh
	case core.InjectionDeferred:
		importance = core.ImportanceLow
	}
	e := w.s.newEnvelope(wire.KindNotify, j.id, wire.Notify{
		Topic: wire.TopicContext, Importance: importance.String(),
		Data: wire.Marshal(wire.Context{Ref: j.id, ID: b.ID, Content: b.Content, Priority: b.Priority.String(), Source: b.Source}),
	})
	raw := e.Encode()
	answer := func(accepted bool, reason string) {
		_ = w.s.self.Report(j.task, core.InjectionAnswered{ID: b.ID, Accepted: accepted, Reason: reason}, nil)
	}
	if len(raw) > w.s.opts.MaxEnvelopeBytes {
		answer(false, "too large for an ACP envelope")
		return nil
	}
	return w.s.out.send(w.ctx, message{
		json: raw, kind: wire.KindNotify, ref: j.id,
		sent: func() { answer(true, "") }, lost: func() { answer(false, "the agent did not fetch it") },
	})
}

// ApprovalDecided implements core.AgentSink. ACP agents ask for no approvals: what they
// say of the kind is refused.
func (w worker) ApprovalDecided(core.Event, core.ApprovalDecided) error {
	w.s.hub.Count("acp.refused." + core.KindApprovalDecided.String())
	return nil
}

// Done implements core.AgentSink: the end, which the peer itself brought about or a
// notice that it took.
func (w worker) Done(_ core.Event, b core.Done) error { return w.ended(b, "") }

// Failed implements core.AgentSink: the peer failed, or its time was up, or the hub had
// enough of it.
func (w worker) Failed(_ core.Event, b core.Failed) error { return w.ended(b, b.Fault.Message) }

// Cancelled implements core.AgentSink.
func (w worker) Cancelled(_ core.Event, b core.Cancelled) error { return w.ended(b, b.Reason) }

// ended notes that the hub regards the task as ended, and has the peer stop. What
// that still says of it tells the hub that the peer has room again.
func (w worker) ended(end core.Body, reason string) error {
	w.s.mu.Lock()
	j := w.s.byTask[w.task.ID()]
	if j == nil || j.over || j.ended {
		w.s.mu.Unlock()
		return nil
	}
	j.over = true
	w.s.remember(j)
	w.s.mu.Unlock()
	if end.Kind() == core.KindDone || j.kind.Passes() {
		return nil
	}
	w.s.hub.Count("acp.folded." + end.Kind().String())
	return w.stop(j, reason)
}

// assignment makes the envelope that gives the peer a task, and fills in the job.
// One that began as an ACP envelope of the same kind stays it.
func (s *session) assignment(t *task.Task, j *job) message {
	req := t.Request()
	if raw := originOf(req); raw != nil {
		j.id, j.kind = wire.TextOf(raw, "id"), wire.KindOf(raw)
		j.silent = j.kind == wire.KindDelegate && !req.ReportBack
		s.mu.Lock()
		taken := s.jobs[j.id] != nil
		s.mu.Unlock()
		out := wire.Readdress(raw, t.From().ID, string(s.peer.id), "")
		if taken {
			j.id = wire.NewID()
			out = wire.SetMembers(out, wire.Field{Key: "id", Value: wire.Marshal(j.id)})
		}
		return message{json: out, kind: j.kind}
	}
	now, history := time.Now(), req.History
	if req.History = nil; len(history) > 0 {
		req.History = []core.Turn{} // its place
	}
	var payload any
	switch req.Intent {
	case core.IntentDelegate:
		j.kind, payload = wire.KindDelegate, wire.DelegateOf(req, now)
	case core.IntentNotify:
		j.kind, payload = wire.KindNotify, wire.NotifyOf(*req.Notice)
	default:
		j.kind, payload = wire.KindQuery, wire.QueryOf(req, now)
	}
	e := s.newEnvelope(j.kind, "", payload)
	e.From = t.From().ID
	if j.kind == wire.KindNotify {
		e.ID = string(j.task) // the same whenever it comes: see hear
	}
	j.id = e.ID
	raw := e.Encode()
	if len(history) > 0 {
		raw = wire.WithHistory(raw, history)
	}
	return message{json: raw, kind: j.kind}
}

// originOf returns the ACP envelope that a request began as, or nil.
func originOf(req core.Request) json.RawMessage {
	if f := req.Foreign; f == nil || f.Dialect != Dialect || !wire.IsObject(f.JSON) {
		return nil
	}
	return req.Foreign.JSON
}

// report tells the hub what the peer says of a job. What comes too late or is none
// of its business is counted there.
func (s *session) report(j *job, body core.Body, raw []byte) {
	var foreign *core.Foreign
	if raw != nil && j.passes {
		foreign = &core.Foreign{Dialect: Dialect, JSON: raw}
	}
	if err := s.self.Report(j.task, body, foreign); err != nil {
		s.log.Debug("a report that came to nothing", "task", j.task, "kind", body.Kind(), "why", err)
	}
}

// retire notes that the peer has ended a job. Callers hold mu.
func (s *session) retire(j *job) {
	if j.ended {
		return
	}
	j.ended = true
	delete(s.byTask, j.task)
	if !j.over {
		s.remember(j)
	}
}

// maxPastJobs is how many jobs are known after they have ended.
const maxPastJobs = 256

// remember keeps a job that has ended for a while, so that what comes late is known
// to be late. Callers hold mu.
func (s *session) remember(j *job) { s.past.Put(j.id, j) }

// forget drops a job that has ended. Callers hold mu.
func (s *session) forget(id string, j *job) {
	delete(s.jobs, id)
	delete(s.byTask, j.task)
	for cancel, ref := range s.cancels {
		if ref == id {
			delete(s.cancels, cancel)
		}
	}
}
