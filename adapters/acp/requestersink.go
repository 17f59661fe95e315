package acp

import (
	"context"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// requesterSink sends a peer one batch of events of a task that it opened.
type requesterSink struct {
	ctx     context.Context //nolint:containedctx // a requesterSink lives as long as one call of tellRequester
	s       *session
	task    *task.Task
	request *request
	text    strings.Builder // consecutive pieces of text, to be sent in one envelope
}

// tellRequester sends the peer the news of a task that it opened.
func (s *session) tellRequester(ctx context.Context, b hub.Batch) error {
	r, ok := b.Tag.(*request)
	if !ok {
		return nil
	}
	// The lock waits for an open that is under way. If the hub refused the task, its
	// events are not sent.
	s.mu.Lock()
	open := s.requests[r.id] == r
	s.mu.Unlock()
	if !open {
		return nil
	}
	rs := &requesterSink{ctx: ctx, s: s, task: b.Task, request: r}
	for _, e := range b.Events {
		if err := e.Deliver(rs); err != nil {
			return err
		}
	}
	return rs.flush()
}

// Opened acknowledges a delegate as soon as the hub has it.
func (rs *requesterSink) Opened(core.Event, core.Opened) error {
	if rs.request.kind != wire.KindDelegate || rs.request.inherited {
		return nil
	}
	return rs.s.answer(rs.ctx, wire.KindAck, rs.request.id, wire.Ack{Accepted: true})
}

// Text collects consecutive pieces of text.
func (rs *requesterSink) Text(e core.Event, b core.Text) error {
	if !rs.request.live || wire.FrameOf(e) != nil {
		return rs.tell(e, b)
	}
	rs.text.WriteString(b.Text)
	if rs.text.Len() >= wire.PieceBytes(rs.s.opts.MaxEnvelopeBytes) {
		return rs.flush()
	}
	return nil
}

// CancelRequested sends nothing: the cancel was acknowledged or is the hub's own, and the
// end follows.
func (rs *requesterSink) CancelRequested(_ core.Event, b core.CancelRequested) error {
	rs.countFolded(b)
	return nil
}

// ForeignFrame passes an envelope of an unknown kind from one ACP peer to another.
func (rs *requesterSink) ForeignFrame(e core.Event, _ core.ForeignFrame) error {
	raw := wire.FrameOf(e)
	if raw == nil {
		rs.s.self.Refused()
		rs.s.hub.Count("acp.refused." + core.KindForeign.String())
		return nil
	}
	if err := rs.flush(); err != nil {
		return err
	}
	return rs.pass(raw)
}

// The from of later envelopes is the agent, and the sender of injected context knows of it.

func (rs *requesterSink) Assigned(core.Event, core.Assigned) error { return nil }
func (rs *requesterSink) Injected(core.Event, core.Injected) error { return nil }

func (rs *requesterSink) Accepted(e core.Event, b core.Accepted) error       { return rs.tell(e, b) }
func (rs *requesterSink) SessionLost(e core.Event, b core.SessionLost) error { return rs.tell(e, b) }
func (rs *requesterSink) Thinking(e core.Event, b core.Thinking) error       { return rs.tell(e, b) }
func (rs *requesterSink) ToolCall(e core.Event, b core.ToolCall) error       { return rs.tell(e, b) }
func (rs *requesterSink) ToolState(e core.Event, b core.ToolState) error     { return rs.tell(e, b) }
func (rs *requesterSink) ToolResult(e core.Event, b core.ToolResult) error   { return rs.tell(e, b) }
func (rs *requesterSink) File(e core.Event, b core.File) error               { return rs.tell(e, b) }
func (rs *requesterSink) Usage(e core.Event, b core.Usage) error             { return rs.tell(e, b) }
func (rs *requesterSink) Retrying(e core.Event, b core.Retrying) error       { return rs.tell(e, b) }

func (rs *requesterSink) SessionStarted(e core.Event, b core.SessionStarted) error {
	return rs.tell(e, b)
}

func (rs *requesterSink) ApprovalRequested(e core.Event, b core.ApprovalRequested) error {
	return rs.tell(e, b)
}

func (rs *requesterSink) ApprovalDecided(e core.Event, b core.ApprovalDecided) error {
	return rs.tell(e, b)
}

func (rs *requesterSink) QuestionAsked(e core.Event, b core.QuestionAsked) error {
	return rs.tell(e, b)
}

func (rs *requesterSink) QuestionAnswered(e core.Event, b core.QuestionAnswered) error {
	return rs.tell(e, b)
}

func (rs *requesterSink) InjectionAnswered(e core.Event, b core.InjectionAnswered) error {
	return rs.tell(e, b)
}

func (rs *requesterSink) Done(e core.Event, _ core.Done) error           { return rs.end(e) }
func (rs *requesterSink) Failed(e core.Event, _ core.Failed) error       { return rs.end(e) }
func (rs *requesterSink) Cancelled(e core.Event, _ core.Cancelled) error { return rs.end(e) }

// tell sends one event as progress to a peer that declared the extension. Any other peer
// gets it as part of the answer, as far as ACP can express it.
func (rs *requesterSink) tell(e core.Event, body core.Body) error {
	raw := wire.FrameOf(e)
	own := wire.KindOf(raw)
	switch {
	case own == wire.KindAck: // of the agent: the peer got the hub's when the task was opened
		rs.countFolded(body)
		return nil
	case wire.IsPart(raw): // the envelope of the end contains it
		rs.request.endHasFiles = rs.request.endHasFiles || body.Kind() == core.KindFile
		rs.request.endEvents = append(rs.request.endEvents, e)
		return nil
	case !rs.request.live:
		rs.request.missedPieces = rs.request.missedPieces || body.Kind() == core.KindText || body.Kind() == core.KindFile
		rs.countFolded(body)
		return nil
	}
	if err := rs.flush(); err != nil {
		return err
	}
	if own == wire.KindProgress {
		return rs.pass(raw)
	}
	return rs.sendProgress(body)
}

// countFolded counts an event that is folded into something else.
func (rs *requesterSink) countFolded(body core.Body) {
	if !rs.request.inherited { // else it was counted before
		rs.s.hub.Count("acp.folded." + body.Kind().String())
	}
}

// flush sends the collected text in envelopes of bounded size.
func (rs *requesterSink) flush() error {
	text := rs.text.String()
	rs.text.Reset()
	for len(text) > 0 {
		var part string
		part, text = wire.CutText(text, wire.PieceBytes(rs.s.opts.MaxEnvelopeBytes))
		if err := rs.sendProgress(core.Text{Text: part}); err != nil {
			return err
		}
	}
	return nil
}

// sendProgress sends a progress envelope, from the agent unless the event is of the hub or
// of a person. An ACP agent numbers its own progress, which is passed on unchanged: numbers
// grow for each sender.
func (rs *requesterSink) sendProgress(body core.Body) error {
	e := rs.s.newEnvelope(wire.KindProgress, rs.request.id, nil)
	switch body.(type) {
	case core.ApprovalDecided, core.QuestionAnswered, core.InjectionAnswered, core.Retrying:
	default:
		e.From = string(rs.task.Agent())
	}
	rs.request.seq++ // only deliver uses it
	seq := rs.request.seq
	e.Payload = wire.ProgressOf(seq, body)
	raw := e.Encode()
	if len(raw) > rs.s.opts.MaxEnvelopeBytes {
		// The event cannot be cut: tell the peer that it is omitted.
		rs.s.self.Refused()
		rs.s.hub.Count("acp.refused." + body.Kind().String())
		e.Payload = wire.Omitted(seq, body.Kind(), len(raw))
		raw = e.Encode()
	}
	return rs.s.out.send(rs.ctx, message{json: raw, kind: wire.KindProgress, ref: rs.request.id})
}

// pass sends an envelope of the agent unchanged.
func (rs *requesterSink) pass(raw []byte) error {
	out := wire.Readdress(raw, string(rs.task.Agent()), string(rs.s.peer.id), rs.request.id)
	return rs.s.out.send(rs.ctx, message{json: out, kind: wire.KindOf(out), ref: rs.request.id})
}
