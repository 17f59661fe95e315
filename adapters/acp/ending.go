package acp

import (
	"context"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// end tells how the task ended and forgets it.
func (t *teller) end(e core.Event) error {
	if err := t.flush(); err != nil {
		return err
	}
	if err := t.awaitAck(); err != nil {
		return err
	}
	if !t.s.elsewhere(t.asked) {
		if err := t.conclude(e); err != nil {
			return err // it is still owed: see close
		}
	}
	t.s.settled(t.asked)
	return nil
}

// awaitAck waits until a cancel that is being handled has its ack.
func (t *teller) awaitAck() error {
	t.s.mu.Lock()
	acked := t.asked.stopping
	t.s.mu.Unlock()
	if acked == nil {
		return nil
	}
	select {
	case <-acked:
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// settled forgets a task that has ended and was told.
func (s *session) settled(a *asked) {
	s.mu.Lock()
	delete(s.asked, a.id)
	finish := s.finish
	if len(s.asked) > 0 {
		finish = nil
	}
	s.mu.Unlock()
	if finish != nil {
		finish()
	}
}

// conclude sends what the end of the task is in ACP, if anything.
func (t *teller) conclude(e core.Event) error {
	a := t.asked
	switch {
	case t.abandoned():
		return nil
	case a.inherited && time.Since(e.At) > t.s.peers.keep:
		t.s.hub.Count("acp.result.expired")
		return nil
	case !a.reports && a.kind == wire.KindDelegate && !t.refused(e):
		return nil
	}
	if raw := wire.FrameOf(e); raw != nil {
		if raw := t.fitting(raw); raw != nil {
			return t.sendEnd(raw)
		}
	}
	answer := t.task.Answer()
	out := t.s.newEnvelope(wire.KindError, a.id, nil)
	if agent := t.task.Agent(); agent != "" {
		out.From = string(agent)
	}
	switch {
	case a.kind == wire.KindDelegate && a.reports:
		out.Kind, out.Payload = wire.KindResult, wire.Marshal(t.result(answer))
	case answer.Fault != nil && (a.kind.Known() || answer.Fault.Code != core.CodeTimeout && answer.Fault.Code != core.CodeCancelled):
		out.From, out.Payload = wire.HubID, wire.Marshal(t.failure(answer))
	case a.kind == wire.KindQuery:
		out.Kind, out.Payload = wire.KindResponse, wire.Marshal(wire.ResponseOf(answer))
	default:
		return nil // a notice that was taken, or a kind of which the hub does not know whether it has an answer
	}
	raw := out.Encode()
	if len(raw) > t.s.opts.MaxEnvelopeBytes && (a.live || answer.Fault != nil) {
		out.Payload = wire.Marshal(t.shorter(answer))
		raw = out.Encode()
	}
	return t.sendEnd(raw)
}

// refused reports whether a delegate that wants no report is told of its end: nobody
// did it, and its requester did not take it back.
func (t *teller) refused(end core.Event) bool {
	switch end.Body.Kind() {
	case core.KindFailed:
		return true
	case core.KindCancelled:
		return !slices.ContainsFunc(t.task.Events(), func(e core.Event) bool { return e.Body.Kind() == core.KindCancelRequested })
	}
	return false
}

// result is the end of a delegate, which it names.
func (t *teller) result(answer core.Answer) wire.Result {
	r := wire.ResultOf(answer)
	r.TaskRef = wire.Brief(t.task.Request())
	return r
}

// failure is a task that failed, with what was answered before and not told.
func (t *teller) failure(answer core.Answer) *wire.Error {
	if t.asked.live {
		rest := core.Fold(t.asked.withEnd)
		rest.Fault = answer.Fault
		return wire.FailureOf(rest)
	}
	return wire.FailureOf(answer)
}

// shorter is the end of a task without what does not fit: of an answer whose pieces
// the peer has, what they say; of any other that failed, all that came before.
func (t *teller) shorter(answer core.Answer) any {
	switch {
	case !t.asked.live:
		t.s.hub.Count("acp.refused." + core.KindText.String())
		answer = wire.WithoutContent(answer)
	case t.asked.attached:
		answer.Text = wire.Summary(answer.Text)
	default:
		answer.Text, answer.Files = wire.Summary(answer.Text), nil
	}
	switch {
	case t.asked.kind == wire.KindDelegate && t.asked.reports:
		return t.result(answer)
	case answer.Fault != nil:
		return t.failure(answer)
	}
	return wire.ResponseOf(answer)
}

// sendEnd sends the last envelope of a task, or says that it is too large to be
// sent.
func (t *teller) sendEnd(raw []byte) error {
	if most := t.s.opts.MaxEnvelopeBytes; len(raw) > most {
		t.s.hub.Count("acp.refused." + core.KindDone.String())
		return t.s.answer(t.ctx, wire.KindError, t.asked.id, wire.Refusef(wire.CodeTooLarge,
			"the answer is complete, but has %d bytes as an envelope and the limit is %d: declare the extension progress to get it in pieces, or ask for less", len(raw), most))
	}
	m := message{json: raw, kind: wire.KindOf(raw), ref: t.asked.id}
	if s, a := t.s, t.asked; a.kind == wire.KindDelegate {
		owed := s.owing(a)
		m.owed = &owed
		m.lost = func() {
			s.mu.Lock()
			gone := s.gone
			s.mu.Unlock()
			if gone { // else it fell out of a full mailbox, which says so itself
				s.handOver([]owing{owed})
			}
		}
	}
	return t.s.out.send(t.ctx, m)
}

// fitting returns the last envelope of an ACP agent as it is to be passed on, or
// nil when it is none that answers what the peer sent. When pieces of the answer
// came before that the peer has not got, its words are the whole of them.
func (t *teller) fitting(raw []byte) []byte {
	out := wire.Readdress(raw, string(t.task.Agent()), string(t.s.peer.id), t.asked.id)
	kind := wire.KindOf(raw)
	member := map[wire.Kind]string{wire.KindResponse: "summary", wire.KindResult: "outcome"}[kind]
	switch {
	case !t.asked.kind.Known():
		return out
	case kind == wire.KindError, kind == wire.KindResponse && t.asked.kind == wire.KindQuery, kind == wire.KindResult && t.asked.kind == wire.KindDelegate:
	default:
		return nil
	}
	if t.asked.inherited && kind == wire.KindResult && wire.ValueOf(wire.ValueOf(out, "payload"), "task_ref") == nil {
		// The connection that knew the task is gone.
		out = wire.SetInPayload(out, "task_ref", wire.Marshal(wire.Brief(t.task.Request())))
	}
	if !t.asked.pieces {
		return out
	}
	answer := t.task.Answer()
	if kind == wire.KindError {
		partial := wire.PartialOf(answer)
		if partial == nil {
			return out // all its pieces were empty
		}
		if out = wire.SetInPayload(out, "partial", partial); len(out) > t.s.opts.MaxEnvelopeBytes {
			return nil
		}
		return out
	}
	switch {
	case len(answer.Files) > 0 && !wire.HasFiles(out):
		return nil
	case wire.TextOf(wire.ValueOf(out, "payload"), member) == answer.Text:
		return out
	}
	return wire.SetInPayload(out, member, wire.Marshal(answer.Text))
}

// abandoned reports whether nobody waits for the answer any more.
func (t *teller) abandoned() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.asked.abandoned
}
