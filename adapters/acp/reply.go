package acp

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// reply takes what the peer says of something that it was asked.
func (s *session) reply(ctx context.Context, e wire.Envelope) error {
	s.mu.Lock()
	j := s.jobs[e.Ref]
	of := s.jobs[s.cancels[e.Ref]]
	probed := e.Ref != "" && e.Ref == s.probe
	late := j != nil && j.ended
	s.mu.Unlock()
	switch {
	case probed:
		return nil // it does not say what it can do: it stays one that may be addressed by its id
	case j == nil && of != nil:
		return s.cancelAnswered(ctx, e, of)
	case j == nil:
		return s.stray(ctx, e)
	case late:
		s.hub.Count("acp.late")
		return nil
	case !j.kind.Known():
		s.passBack(j, e)
		return nil
	}
	switch e.Kind {
	case wire.KindResponse, wire.KindResult, wire.KindError:
		bodies, err := e.Bodies()
		if err == nil {
			s.conclude(j, bodies, e.Raw)
		}
		return s.unlessRefused(ctx, e, err)
	case wire.KindAck:
		return s.acked(ctx, e, j)
	}
	return s.progressed(ctx, e, j)
}

// acked takes the ack of a delegate. Once that was acknowledged, and for a query,
// an ack with its ref can only be about a cancel.
func (s *session) acked(ctx context.Context, e wire.Envelope, j *job) error {
	var a wire.Ack
	if err := e.Read(&a); err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	s.mu.Lock()
	again := j.acked || j.kind != wire.KindDelegate
	j.acked = true
	s.mu.Unlock()
	switch {
	case again:
		return s.cancelAnswered(ctx, e, j)
	case a.Accepted:
		s.report(j, a.Body(), e.Raw)
		if j.silent {
			s.conclude(j, []core.Body{core.Done{}}, nil) // nothing more is to come
		}
	default:
		s.conclude(j, []core.Body{a.Body()}, e.Raw)
	}
	return nil
}

// cancelAnswered takes the answer to a cancel of the hub: the job has stopped, or
// it could not be stopped and its end is still to come.
func (s *session) cancelAnswered(ctx context.Context, e wire.Envelope, j *job) error {
	if e.Kind != wire.KindAck {
		return nil // an error says that there is nothing to cancel
	}
	var a wire.Ack
	if err := e.Read(&a); err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	s.mu.Lock()
	asked := false
	for _, ref := range s.cancels {
		asked = asked || ref == j.id
	}
	stopped := a.Accepted && asked && !j.ended
	s.mu.Unlock()
	if stopped {
		s.conclude(j, []core.Body{core.Cancelled{Reason: "the agent stopped"}}, nil)
	}
	return nil
}

// progressed takes what an agent says on the way.
func (s *session) progressed(ctx context.Context, e wire.Envelope, j *job) error {
	_, body, err := e.Progress()
	if err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	switch body.(type) {
	case core.ApprovalRequested, core.ApprovalDecided, core.Injected, core.Retrying:
		s.hub.Count("acp.refused." + body.Kind().String())
		return s.unlessRefused(ctx, e, wire.Refusef(wire.CodeUnsupported, "an ACP agent does not say %s: tell of it in text or thinking", body.Kind()))
	case core.Usage:
		s.mu.Lock()
		j.usage = true
		s.mu.Unlock()
	case core.Text:
		s.mu.Lock()
		j.text = true
		s.mu.Unlock()
	}
	s.report(j, body, e.Raw)
	return nil
}

// conclude reports the end of a job: the last of bodies, with the envelope that
// said it, and before that what else it says and progress has not said already.
func (s *session) conclude(j *job, bodies []core.Body, raw []byte) {
	s.mu.Lock()
	said := map[core.Kind]bool{core.KindUsage: j.usage, core.KindText: j.text}
	s.retire(j)
	s.mu.Unlock()
	last := len(bodies) - 1
	for _, b := range bodies[:last] {
		if !said[b.Kind()] {
			s.report(j, b, wire.PartOf(raw))
		}
	}
	s.report(j, bodies[last], raw)
	if !j.kind.Passes() {
		s.roomAgain()
	}
}

// answerRefused ends the job that an envelope was to end which the hub has refused.
// Nobody waits for another one: its sender may never send it.
func (s *session) answerRefused(e wire.Envelope, why *wire.Error) {
	switch e.Kind {
	case wire.KindResponse, wire.KindResult, wire.KindError:
	default:
		return
	}
	s.mu.Lock()
	j := s.jobs[e.Ref]
	gone := j == nil || j.ended
	s.mu.Unlock()
	if gone {
		return
	}
	code := core.CodeInternal
	if why.Code == wire.CodeTooLarge {
		code = core.CodeTooLarge
	}
	s.conclude(j, []core.Body{core.Failed{Fault: core.NewFault(code, "the answer of agent %s was refused: %s", s.peer.id, why.Message)}}, nil)
}

// stray is told a reply to nothing that the peer was asked (promise P7): nobody
// answers in the name of another. One who asked may only try to decide on a tool
// call in that way.
func (s *session) stray(ctx context.Context, e wire.Envelope) error {
	s.mu.Lock()
	own := s.asked[e.Ref] != nil
	s.mu.Unlock()
	if _, body, err := e.Progress(); own && e.Kind == wire.KindProgress && err == nil && body.Kind() == core.KindApprovalDecided {
		s.hub.Count("acp.refused." + body.Kind().String())
		return s.unlessRefused(ctx, e, wire.Refusef(wire.CodeUnsupported, "people at the hub decide on calls of tools: ACP has no word for it"))
	}
	s.hub.Count("acp.stray")
	if e.Kind == wire.KindError || e.Kind == wire.KindAck {
		return nil
	}
	return s.unlessRefused(ctx, e, wire.Refusef(wire.CodeNotAuthorized, "ref %q is nothing that you were asked on this connection, or it is long over", e.Ref))
}

// unknown takes an envelope of a kind that the hub does not know. An answer goes
// to who asked; anything else passes to the one ACP peer that it is for, and waits
// beside that peer's tasks for its first answer until the deadline. Whether there
// will be one, the hub cannot know.
func (s *session) unknown(ctx context.Context, e wire.Envelope) error {
	s.mu.Lock()
	j := s.jobs[e.Ref]
	late := j != nil && j.ended
	s.mu.Unlock()
	switch {
	case late:
		s.hub.Count("acp.late")
		return nil
	case j != nil && !j.passes:
		return s.unlessRefused(ctx, e, s.unknownKind(e))
	case j != nil && j.kind.Known():
		s.report(j, core.ForeignFrame{Dialect: Dialect, Name: string(e.Kind)}, e.Raw)
		return nil
	case j != nil:
		s.passBack(j, e)
		return nil
	}
	to, err := s.address(e.To)
	if err == nil {
		agent, here := s.hub.Reach(to.Agent())
		switch {
		case to.Agent() != "" && !here:
			err = wire.Refusef(wire.CodePeerNotFound, "no agent %q is here: send a discover without to for a list", e.To)
		case agent.Dialect != Dialect:
			err = s.unknownKind(e)
		}
	}
	if err == nil {
		req := core.Request{
			Intent: core.IntentNotify, To: to,
			Notice: passing(e),
		}
		err = s.open(e, req, &asked{id: e.ID, kind: e.Kind, reports: true}, false)
	}
	return s.unlessRefused(ctx, e, err)
}

func (s *session) unknownKind(e wire.Envelope) *wire.Error {
	s.hub.Count("acp.refused." + core.KindForeign.String())
	return wire.Refusef(wire.CodeUnknownKind, "the hub does not know the kind %q and passes it on to ACP agents only: address one, or send one of %s", e.Kind, wire.KindList())
}
