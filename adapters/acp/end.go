package acp

import (
	"context"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// end sends the end of the task and forgets the request.
func (rs *requesterSink) end(e core.Event) error {
	if err := rs.flush(); err != nil {
		return err
	}
	if err := rs.awaitAck(); err != nil {
		return err
	}
	if !rs.s.forward(rs.request) {
		if err := rs.tellEnd(e); err != nil {
			return err // the result is still pending: see close
		}
	}
	rs.s.mu.Lock()
	defer rs.s.mu.Unlock()
	delete(rs.s.requests, rs.request.id)
	return nil
}

// awaitAck waits until a cancel that is being handled is acknowledged.
func (rs *requesterSink) awaitAck() error {
	rs.s.mu.Lock()
	acked := rs.request.cancelling
	rs.s.mu.Unlock()
	if acked == nil {
		return nil
	}
	select {
	case <-acked:
		return nil
	case <-rs.ctx.Done():
		return context.Cause(rs.ctx)
	}
}

// tellEnd sends the envelope that ends the task, if ACP has one for it.
func (rs *requesterSink) tellEnd(e core.Event) error {
	r := rs.request
	switch {
	case rs.abandoned():
		return nil
	case r.inherited && time.Since(e.At) > rs.s.peers.keep:
		rs.s.hub.Count("acp.result.expired")
		return nil
	case !r.reports && r.kind == wire.KindDelegate && !rs.neverDone(e):
		return nil
	}
	if raw := wire.FrameOf(e); raw != nil {
		if raw := rs.passedEnd(raw); raw != nil {
			return rs.sendEnd(raw)
		}
	}
	answer := rs.task.Answer()
	if !r.expects(answer) {
		return nil
	}
	raw := rs.encodeEnd(answer)
	if len(raw) > rs.s.opts.MaxEnvelopeBytes && (r.live || answer.Fault != nil) {
		raw = rs.encodeEnd(rs.shortened(answer))
	}
	return rs.sendEnd(raw)
}

// expects reports whether ACP has an envelope for an outcome of the request.
func (r *request) expects(answer core.Answer) bool {
	switch {
	case r.kind == wire.KindQuery, r.kind == wire.KindDelegate && r.reports:
		return true
	case answer.Fault == nil:
		return false // a notice that was taken, or an unknown kind
	}
	// An unknown kind may have no answer.
	return r.kind.Known() || answer.Fault.Code != core.CodeTimeout && answer.Fault.Code != core.CodeCancelled
}

// encodeEnd returns the envelope that ends the task. An error has only the part of the answer
// that was not sent before.
func (rs *requesterSink) encodeEnd(answer core.Answer) []byte {
	r, kind := rs.request, wire.KindQuery
	switch {
	case r.kind == wire.KindDelegate && r.reports:
		kind = r.kind
	case r.live && answer.Fault != nil:
		unsent := core.Fold(r.endEvents)
		unsent.Fault = answer.Fault
		answer = unsent
	}
	out := rs.s.newEnvelope(kind, r.id, nil)
	out.Kind, out.Payload = wire.LastOf(kind, rs.task.Request(), answer)
	if agent := rs.task.Agent(); agent != "" && out.Kind != wire.KindError {
		out.From = string(agent)
	}
	return out.Encode()
}

// neverDone reports whether nobody did a delegate although its requester did not cancel
// it. The peer then gets an error even if it wants no report.
func (rs *requesterSink) neverDone(end core.Event) bool {
	switch end.Body.Kind() {
	case core.KindFailed:
		return true
	case core.KindCancelled:
		return !slices.ContainsFunc(rs.task.Events(), func(e core.Event) bool { return e.Body.Kind() == core.KindCancelRequested })
	}
	return false
}

// shortened returns an answer without the pieces that the peer got before, or the answer of a
// failed task without its content.
func (rs *requesterSink) shortened(answer core.Answer) core.Answer {
	if !rs.request.live {
		rs.s.hub.Count("acp.refused." + core.KindText.String())
		return wire.WithoutContent(answer)
	}
	if !rs.request.endHasFiles {
		answer.Files = nil
	}
	answer.Text = wire.Summary(answer.Text)
	return answer
}

// sendEnd sends the last envelope of a task, or an error when it is too large.
func (rs *requesterSink) sendEnd(raw []byte) error {
	if most := rs.s.opts.MaxEnvelopeBytes; len(raw) > most {
		rs.s.self.Refused()
		rs.s.hub.Count("acp.refused." + core.KindDone.String())
		return rs.s.answer(rs.ctx, wire.KindError, rs.request.id, wire.Refusef(wire.CodeTooLarge,
			"the answer is complete, but has %d bytes as an envelope and the limit is %d: declare the extension progress to get it in pieces, or ask for less", len(raw), most))
	}
	m := message{json: raw, kind: wire.KindOf(raw), ref: rs.request.id}
	if s, r := rs.s, rs.request; r.kind == wire.KindDelegate {
		owed := s.pendingResult(r)
		m.result = &owed
		m.lost = func() {
			s.mu.Lock()
			gone := s.closed
			s.mu.Unlock()
			if gone { // otherwise a full mailbox dropped it, and tells the peer of a gap
				s.handOver([]pendingResult{owed})
			}
		}
	}
	return rs.s.out.send(rs.ctx, m)
}

// passedEnd returns the last envelope of an ACP agent as it is passed on, or nil when its
// kind does not answer the request. If the peer did not get the pieces of the answer, its
// text becomes all of them.
func (rs *requesterSink) passedEnd(raw []byte) []byte {
	out := wire.Readdress(raw, string(rs.task.Agent()), string(rs.s.peer.id), rs.request.id)
	kind := wire.KindOf(raw)
	member := map[wire.Kind]string{wire.KindResponse: "summary", wire.KindResult: "outcome"}[kind]
	switch {
	case !rs.request.kind.Known():
		return out
	case kind == wire.KindError, kind == wire.KindResponse && rs.request.kind == wire.KindQuery, kind == wire.KindResult && rs.request.kind == wire.KindDelegate:
	default:
		return nil
	}
	if rs.request.inherited && kind == wire.KindResult && wire.ValueOf(wire.ValueOf(out, "payload"), "task_ref") == nil {
		// Only the connection that is gone knew the task.
		out = wire.SetInPayload(out, "task_ref", wire.Marshal(wire.Brief(rs.task.Request())))
	}
	if !rs.request.missedPieces {
		return out
	}
	answer := rs.task.Answer()
	if kind == wire.KindError {
		partial := wire.PartialOf(answer)
		if partial == nil {
			return out // all its pieces were empty
		}
		if out = wire.SetInPayload(out, "partial", partial); len(out) > rs.s.opts.MaxEnvelopeBytes {
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
func (rs *requesterSink) abandoned() bool {
	rs.s.mu.Lock()
	defer rs.s.mu.Unlock()
	return rs.request.abandoned
}
