package acp

import (
	"context"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// teller tells a peer the events of a task that it asked for: one batch of them.
type teller struct {
	ctx   context.Context //nolint:containedctx // a teller lives as long as one call of tell
	s     *session
	task  *task.Task
	asked *asked
	text  strings.Builder // consecutive pieces of text, to be told in one envelope
}

// tell passes on what happened in a task that the peer asked for.
func (s *session) tell(ctx context.Context, b hub.Batch) error {
	a, ok := b.Tag.(*asked)
	if !ok {
		return nil
	}
	// A task that is being opened is told once that is settled; one that was refused
	// is not, even where its first event was on the way already.
	s.mu.Lock()
	open := s.asked[a.id] == a
	s.mu.Unlock()
	if !open {
		return nil
	}
	t := &teller{ctx: ctx, s: s, task: b.Task, asked: a}
	for _, e := range b.Events {
		if err := e.Deliver(t); err != nil {
			return err
		}
	}
	return t.flush()
}

// Opened implements core.Sink. What was delegated is acknowledged as soon as the
// hub has it.
func (t *teller) Opened(core.Event, core.Opened) error {
	if t.asked.kind != wire.KindDelegate || t.asked.inherited {
		return nil
	}
	return t.s.answer(t.ctx, wire.KindAck, t.asked.id, wire.Ack{Accepted: true, EstimatedMS: t.s.hub.Estimate(t.task.ID()).Milliseconds()})
}

// Assigned implements core.Sink.
func (t *teller) Assigned(core.Event, core.Assigned) error { return nil }

// Accepted implements core.Sink.
func (t *teller) Accepted(e core.Event, b core.Accepted) error { return t.piece(e, b) }

// SessionStarted implements core.Sink.
func (t *teller) SessionStarted(e core.Event, b core.SessionStarted) error { return t.piece(e, b) }

// SessionLost implements core.Sink.
func (t *teller) SessionLost(e core.Event, b core.SessionLost) error { return t.piece(e, b) }

// Thinking implements core.Sink.
func (t *teller) Thinking(e core.Event, b core.Thinking) error { return t.piece(e, b) }

// Text implements core.Sink. Pieces that stand together leave together.
func (t *teller) Text(e core.Event, b core.Text) error {
	if !t.asked.live || wire.FrameOf(e) != nil {
		return t.piece(e, b)
	}
	t.text.WriteString(b.Text)
	if t.text.Len() >= wire.PieceBytes(t.s.opts.MaxEnvelopeBytes) {
		return t.flush()
	}
	return nil
}

// ToolCall implements core.Sink.
func (t *teller) ToolCall(e core.Event, b core.ToolCall) error { return t.piece(e, b) }

// ToolState implements core.Sink.
func (t *teller) ToolState(e core.Event, b core.ToolState) error { return t.piece(e, b) }

// ToolResult implements core.Sink.
func (t *teller) ToolResult(e core.Event, b core.ToolResult) error { return t.piece(e, b) }

// ApprovalRequested implements core.Sink. People at the hub decide.
func (t *teller) ApprovalRequested(e core.Event, b core.ApprovalRequested) error {
	return t.piece(e, b)
}

// ApprovalDecided implements core.Sink.
func (t *teller) ApprovalDecided(e core.Event, b core.ApprovalDecided) error { return t.piece(e, b) }

// Injected implements core.Sink. Who injected it knows.
func (t *teller) Injected(core.Event, core.Injected) error { return nil }

// InjectionAnswered implements core.Sink.
func (t *teller) InjectionAnswered(e core.Event, b core.InjectionAnswered) error {
	return t.piece(e, b)
}

// File implements core.Sink.
func (t *teller) File(e core.Event, b core.File) error { return t.piece(e, b) }

// Usage implements core.Sink.
func (t *teller) Usage(e core.Event, b core.Usage) error { return t.piece(e, b) }

// Retrying implements core.Sink.
func (t *teller) Retrying(e core.Event, b core.Retrying) error { return t.piece(e, b) }

// CancelRequested implements core.Sink. The cancel was acknowledged already, or
// was the hub's own; the end follows.
func (t *teller) CancelRequested(_ core.Event, b core.CancelRequested) error {
	t.folded(b)
	return nil
}

// ForeignFrame implements core.Sink. Kinds that the hub does not know pass from
// ACP peer to ACP peer.
func (t *teller) ForeignFrame(e core.Event, _ core.ForeignFrame) error {
	raw := wire.FrameOf(e)
	if raw == nil {
		t.s.hub.Count("acp.refused." + core.KindForeign.String())
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	return t.pass(raw)
}

// Done implements core.Sink.
func (t *teller) Done(e core.Event, _ core.Done) error { return t.end(e) }

// Failed implements core.Sink.
func (t *teller) Failed(e core.Event, _ core.Failed) error { return t.end(e) }

// Cancelled implements core.Sink.
func (t *teller) Cancelled(e core.Event, _ core.Cancelled) error { return t.end(e) }

// piece tells one event by a progress envelope, to a peer that understands it. To
// any other the answer as a whole will say it, as far as ACP can.
func (t *teller) piece(e core.Event, body core.Body) error {
	raw, content := wire.FrameOf(e), body.Kind() == core.KindText || body.Kind() == core.KindFile
	own := wire.KindOf(raw)
	switch {
	case own == wire.KindAck: // of the agent: the peer had the hub's, when the hub took the task
		t.folded(body)
		return nil
	case wire.IsPart(raw): // the peer gets it with the end
		t.asked.attached = t.asked.attached || body.Kind() == core.KindFile
		t.asked.withEnd = append(t.asked.withEnd, e)
		return nil
	case !t.asked.live:
		t.asked.pieces = t.asked.pieces || content
		t.folded(body)
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	if own == wire.KindProgress {
		return t.pass(raw)
	}
	return t.say(body)
}

// folded counts what is told otherwise than as what it is.
func (t *teller) folded(body core.Body) {
	if !t.asked.inherited { // else it was counted before
		t.s.hub.Count("acp.folded." + body.Kind().String())
	}
}

// flush tells the text that was gathered, in envelopes of bounded size.
func (t *teller) flush() error {
	text := t.text.String()
	t.text.Reset()
	for len(text) > 0 {
		var part string
		part, text = wire.CutText(text, wire.PieceBytes(t.s.opts.MaxEnvelopeBytes))
		if err := t.say(core.Text{Text: part}); err != nil {
			return err
		}
	}
	return nil
}

// say sends a progress envelope, in the name of the agent unless it was the hub or
// a person who said it. What an ACP agent numbers itself passes as it came, so that
// the numbers grow for each sender.
func (t *teller) say(body core.Body) error {
	e := t.s.newEnvelope(wire.KindProgress, t.asked.id, nil)
	switch body.(type) {
	case core.ApprovalDecided, core.InjectionAnswered, core.Retrying:
	default:
		e.From = string(t.task.Agent())
	}
	t.asked.told++ // of the pump alone
	seq := t.asked.told
	e.Payload = wire.ProgressOf(seq, body)
	raw := e.Encode()
	if len(raw) > t.s.opts.MaxEnvelopeBytes {
		// It cannot be cut, and it must not vanish: say that it is left out.
		t.s.hub.Count("acp.refused." + body.Kind().String())
		e.Payload = wire.Omitted(seq, body.Kind(), len(raw))
		raw = e.Encode()
	}
	return t.s.out.send(t.ctx, message{json: raw, kind: wire.KindProgress, ref: t.asked.id})
}

// pass sends an envelope of the agent as it came.
func (t *teller) pass(raw []byte) error {
	out := wire.Readdress(raw, string(t.task.Agent()), string(t.s.peer.id), t.asked.id)
	return t.s.out.send(t.ctx, message{json: out, kind: wire.KindOf(out), ref: t.asked.id})
}
