package acp

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// subscribe subscribes the peer to topics.
func (s *session) subscribe(ctx context.Context, e wire.Envelope) error {
	topics, err := s.topics(e)
	if err == nil {
		err = s.self.Subscribe(topics)
	}
	if err != nil {
		return s.refuseIf(ctx, e, err)
	}
	return s.answer(ctx, wire.KindAck, e.ID, wire.Ack{Accepted: true})
}

// unsubscribe ends subscriptions. The ack says whether there was one.
func (s *session) unsubscribe(ctx context.Context, e wire.Envelope) error {
	topics, err := s.topics(e)
	if err != nil {
		return s.refuseIf(ctx, e, err)
	}
	return s.answer(ctx, wire.KindAck, e.ID, wire.Ack{Accepted: s.self.Unsubscribe(topics)})
}

// topics reads a subscribe or an unsubscribe, which only the hub handles.
func (s *session) topics(e wire.Envelope) ([]string, error) {
	var t wire.Topics
	if err := e.Read(&t); err != nil {
		return nil, err
	}
	to, err := s.address(e.To)
	if err == nil && !to.IsZero() && to.Reach() != core.ReachHub {
		err = wire.Refusef(wire.CodeInvalidEnvelope, "%s is for the hub, not for %q: leave to out", e.Kind, e.To)
	}
	return t.Topics, err
}

// tellNotice sends a notice of a topic that the peer subscribes to. Its id is the same on
// every delivery: that of the envelope it began as, or of its task.
func (s *session) tellNotice(ctx context.Context, b hub.Batch) error {
	if b.Gap != nil {
		return s.tellMissed(ctx, b.Gap.To-b.Gap.From+1)
	}
	delivered := func() { s.self.NoticeDelivered(b.Task, b.Tag) }
	req := b.Task.Request()
	var out []byte
	if raw := originOf(req); raw != nil {
		out = wire.Readdress(raw, b.Task.From().ID, string(s.peer.id), "")
	} else {
		e := s.newEnvelope(wire.KindNotify, "", wire.NotifyOf(*req.Notice))
		e.ID, e.From = string(b.Task.ID()), b.Task.From().ID
		out = e.Encode()
	}
	if out = s.withTrace(out, b.Task); len(out) > s.opts.MaxEnvelopeBytes {
		s.hub.Count("acp.refused.notice")
		delivered()
		return s.tellMissed(ctx, 1)
	}
	return s.out.send(ctx, message{json: out, kind: wire.KindNotify, sent: delivered})
}

// tellMissed tells the peer how many notices of its topics it may have missed.
func (s *session) tellMissed(ctx context.Context, most uint64) error {
	s.hub.Count("acp.missed")
	return s.notice(ctx, wire.TopicMissed, map[string]uint64{"missed": most})
}
