package parallax

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// outgoing is a frame to be sent, and what to do once the transport has taken it.
type outgoing struct {
	kind   string
	frame  []byte
	onSent func()
}

// send queues a message. An empty id gets one of the hub; a reply has that of the
// agent's message.
func (s *session) send(ctx context.Context, kind, id string, payload any) error {
	frame, err := s.frame(kind, id, payload, nil)
	if err != nil {
		return err
	}
	s.opts.Traffic.countSent(kind)
	return s.link.Send(ctx, frame, len(frame))
}

// sendAll queues frames in order.
func (s *session) sendAll(ctx context.Context, out []outgoing) error {
	for _, o := range out {
		s.opts.Traffic.countSent(o.kind)
		if err := s.link.SendThen(ctx, o.frame, len(o.frame), o.onSent); err != nil {
			return err
		}
	}
	return nil
}

// refuse sends an error about a message of the agent. The connection stays open.
func (s *session) refuse(ctx context.Context, id, code, text string) error {
	s.hub.Count("parallax.error." + code)
	return s.send(ctx, wire.TypeError, id, wire.Refusal{Code: code, Message: text})
}

// fail sends a fatal error and returns the reason to close the connection.
func (s *session) fail(ctx context.Context, id, code, text string, r link.Reason) error {
	s.hub.Count("parallax.error." + code)
	if err := s.send(ctx, wire.TypeError, id, wire.Refusal{Code: code, Message: text, Fatal: true}); err != nil {
		return err
	}
	r.Text = text
	return &r
}

// frame returns a signed message. f has the unknown members that a peer of the same
// dialect sent.
func (s *session) frame(kind, id string, payload any, f *core.Foreign) ([]byte, error) {
	if id == "" {
		id = s.nextID()
	}
	frame, err := wire.Encode(kind, id, time.Now(), payload)
	if err != nil {
		return nil, err
	}
	return s.seal(frame, f)
}

// seal adds unknown members to a frame and signs it.
func (s *session) seal(frame []byte, f *core.Foreign) ([]byte, error) {
	return wire.Sign(wire.Restore(frame, f), s.key())
}

func (s *session) nextID() string { return "hub_" + strconv.FormatUint(s.ids.Add(1), 10) }

// foreign returns the unknown members of a message; rest has those of its payload. A
// signature cannot be passed on.
func (s *session) foreign(m wire.Message, rest json.RawMessage) *core.Foreign {
	if m.Signature != "" && s.key() == nil {
		s.hub.Count("parallax.refused.signature")
	}
	return m.Foreign(rest)
}
