package acp

import (
	"cmp"
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// handleReply handles an envelope of the peer that answers one of the hub.
func (s *session) handleReply(ctx context.Context, e wire.Envelope) error {
	a, late := s.assigned(e.Ref)
	s.mu.Lock()
	cancelled := s.assignments[s.cancels[e.Ref]]
	discover := e.Ref != "" && e.Ref == s.discoverID
	s.mu.Unlock()
	switch {
	case discover:
		return nil // without capabilities the peer can be addressed only by its id
	case a == nil && cancelled != nil:
		return s.handleCancelAck(ctx, e, cancelled)
	case a == nil:
		return s.unmatched(ctx, e)
	case late:
		s.hub.Count("acp.late")
		return nil
	case !a.kind.Known():
		s.passBack(a, e)
		return nil
	}
	switch e.Kind {
	case wire.KindResponse, wire.KindResult, wire.KindError:
		bodies, err := e.Bodies()
		if err == nil {
			s.end(a, bodies, e.Raw)
		}
		return s.refuseIf(ctx, e, err)
	case wire.KindAck:
		return s.handleAck(ctx, e, a)
	}
	return s.handleProgress(ctx, e, a)
}

// handleAck handles an ack with the ref of an assignment. For anything but the first ack
// of a delegate it answers a cancel.
func (s *session) handleAck(ctx context.Context, e wire.Envelope, a *assignment) error {
	var ack wire.Ack
	if err := e.Read(&ack); err != nil {
		return s.refuseIf(ctx, e, err)
	}
	s.mu.Lock()
	again := a.acked || a.kind != wire.KindDelegate
	a.acked = true
	s.mu.Unlock()
	switch {
	case again:
		return s.handleCancelAck(ctx, e, a)
	case ack.Accepted:
		s.report(a, ack.Body(), e.Raw)
		if a.noReport {
			s.end(a, []core.Body{core.Done{}}, nil) // there is no result
		}
	default:
		s.end(a, []core.Body{ack.Body()}, e.Raw)
	}
	return nil
}

// handleCancelAck handles the answer to a cancel of the hub: the peer stopped, or it could
// not and the end is still to come.
func (s *session) handleCancelAck(ctx context.Context, e wire.Envelope, a *assignment) error {
	if e.Kind != wire.KindAck {
		return nil // an error: there is nothing to cancel
	}
	var ack wire.Ack
	if err := e.Read(&ack); err != nil {
		return s.refuseIf(ctx, e, err)
	}
	s.mu.Lock()
	stopped, why := ack.Accepted && a.cancelSent && !a.endedByPeer, cmp.Or(a.cancelReason, "the agent stopped")
	s.mu.Unlock()
	if stopped {
		s.end(a, []core.Body{core.Cancelled{Reason: why}}, nil)
	}
	return nil
}

// handleProgress handles an event that the peer reports before the end.
func (s *session) handleProgress(ctx context.Context, e wire.Envelope, a *assignment) error {
	_, body, err := e.Progress()
	if err != nil {
		return s.refuseIf(ctx, e, err)
	}
	switch body.(type) {
	case core.ApprovalRequested, core.ApprovalDecided, core.QuestionAsked, core.QuestionAnswered, core.Injected, core.Retrying:
		s.hub.Count("acp.refused." + body.Kind().String())
		s.opts.Link.Frames.Event(a.task, true, body.Kind(), 0, true)
		return s.refuseIf(ctx, e, wire.Refusef(wire.CodeUnsupported, "an ACP agent does not say %s: tell of it in text or thinking", body.Kind()))
	}
	s.mu.Lock()
	a.sentUsage = a.sentUsage || body.Kind() == core.KindUsage
	a.sentText = a.sentText || body.Kind() == core.KindText
	piece, _ := e.Content().Get(body.Kind().String()).Piece()
	body, half := a.pieces.Join(body, piece)
	s.mu.Unlock()
	if half && !a.verbatim {
		return nil // the next piece has the other half
	}
	raw := e.Raw
	if body.Kind() == core.KindForeign {
		raw = nil // it is the name of a frame of another dialect, and no frame of this one
	}
	s.report(a, body, raw)
	return nil
}

// end reports the end of an assignment, the last of bodies, with the envelope that brought
// it, and before it the other bodies, without those that progress brought already.
func (s *session) end(a *assignment, bodies []core.Body, raw []byte) {
	s.mu.Lock()
	known := map[core.Kind]bool{core.KindUsage: a.sentUsage, core.KindText: a.sentText}
	rest := a.pieces.Rest()
	s.retire(a)
	s.mu.Unlock()
	if !a.verbatim { // an ACP peer has the halves
		for _, b := range rest {
			s.report(a, b, nil)
		}
	}
	last := len(bodies) - 1
	for _, b := range bodies[:last] {
		if !known[b.Kind()] {
			s.report(a, b, wire.PartOf(raw))
		}
	}
	s.report(a, bodies[last], raw)
	if !a.kind.Passes() {
		s.clearOverload()
	}
}

// failRefused fails the task that a refused envelope would have ended. Its sender may never
// send another.
func (s *session) failRefused(e wire.Envelope, why *wire.Error) {
	switch e.Kind {
	case wire.KindResponse, wire.KindResult, wire.KindError:
	default:
		return
	}
	a, ended := s.assigned(e.Ref)
	if a == nil || ended {
		return
	}
	code := core.CodeInternal
	if why.Code == wire.CodeTooLarge {
		code = core.CodeTooLarge
	}
	s.end(a, []core.Body{core.Failed{Fault: core.NewFault(code, "the answer of agent %s was refused: %s", s.peer.id, why.Message)}}, nil)
}

// unmatched handles an answer to nothing that the peer was sent: nobody answers for
// another (promise P7). A requester that tries to decide on a tool call gets its own error.
func (s *session) unmatched(ctx context.Context, e wire.Envelope) error {
	s.mu.Lock()
	own := s.requests[e.Ref] != nil
	s.mu.Unlock()
	if _, body, err := e.Progress(); own && e.Kind == wire.KindProgress && err == nil && body.Kind() == core.KindApprovalDecided {
		s.hub.Count("acp.refused." + body.Kind().String())
		return s.refuseIf(ctx, e, wire.Refusef(wire.CodeUnsupported, "people at the hub decide on calls of tools: ACP has no word for it"))
	}
	s.hub.Count("acp.stray")
	if e.Kind == wire.KindError || e.Kind == wire.KindAck {
		return nil
	}
	return s.refuseIf(ctx, e, wire.Refusef(wire.CodeNotAuthorized, "ref %q is nothing that you were asked on this connection, or it is long over", e.Ref))
}

// handleUnknown handles an envelope of a kind that the hub does not know. An answer goes
// to the requester. Any other passes to the ACP peer in to, and waits beside that peer's
// tasks for its first answer until the deadline; the hub cannot know whether there will be
// one.
func (s *session) handleUnknown(ctx context.Context, e wire.Envelope) error {
	a, late := s.assigned(e.Ref)
	switch {
	case late:
		s.hub.Count("acp.late")
		return nil
	case a != nil && !a.verbatim:
		return s.refuseIf(ctx, e, s.unknownKind(e))
	case a != nil && a.kind.Known():
		s.report(a, core.ForeignFrame{Dialect: Dialect, Name: string(e.Kind)}, e.Raw)
		return nil
	case a != nil:
		s.passBack(a, e)
		return nil
	}
	to, err := s.address(e.To)
	if err == nil {
		agent, here := s.hub.Reach(s.principal, to.Agent())
		switch {
		case to.Agent() != "" && !here:
			err = wire.Refusef(wire.CodePeerNotFound, "no agent %q is here: send a discover without to for a list", e.To)
		case agent.Dialect != Dialect:
			err = s.unknownKind(e)
		}
	}
	if err == nil {
		err = s.passOn(ctx, e, to, time.Time{})
	}
	return s.refuseIf(ctx, e, err)
}

func (s *session) unknownKind(e wire.Envelope) *wire.Error {
	s.hub.Count("acp.refused." + core.KindForeign.String())
	return wire.Refusef(wire.CodeUnknownKind, "the hub does not know the kind %q and passes it on to ACP agents only: address one, or send one of %s", e.Kind, wire.KindList())
}
