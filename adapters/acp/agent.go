package acp

import (
	"context"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// discover asks the peer what it can do.
func (s *session) discover(ctx context.Context) error {
	e := s.newEnvelope(wire.KindDiscover, "", wire.Discover{Extensions: wire.Extensions()})
	s.mu.Lock()
	s.probe = e.ID
	s.mu.Unlock()
	return s.out.send(ctx, message{json: e.Encode(), kind: wire.KindDiscover})
}

// introduce takes the peer's capabilities: from here on it is an agent. Before, it
// is one for those only who know its id.
func (s *session) introduce(ctx context.Context, e wire.Envelope) error {
	return s.introduceBy(ctx, e, s.join)
}

// introduceBy is introduce with a way to make the peer an agent. A conflict of
// [session.join] begins a takeover, which answers the envelope later.
func (s *session) introduceBy(ctx context.Context, e wire.Envelope, join func(context.Context, core.Card) error) error {
	var c wire.Capabilities
	err := e.Read(&c)
	if err == nil {
		err = join(ctx, c.Card(s.peer.id, e.Content()))
	}
	if errors.Is(err, errIDTaken) {
		s.beginTakeover(ctx, e)
		return nil
	}
	if err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	s.declare(c.Extensions)
	load := core.LoadIdle
	if c.MaxConcurrentTasks != nil && *c.MaxConcurrentTasks == 0 {
		load = core.LoadDraining
	}
	s.self.SetLoad(load)
	return nil
}

// declare notes which extensions the peer speaks. What it declared stays.
func (s *session) declare(extensions []string) {
	if slices.Contains(extensions, wire.ExtensionProgress) {
		s.mu.Lock()
		s.progress = true
		s.mu.Unlock()
	}
}

// join makes the peer the agent of the card, or replaces its card. It returns
// errIDTaken when another connection has the id.
func (s *session) join(_ context.Context, card core.Card) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joined {
		return s.self.Update(card)
	}
	switch err := s.self.Join(card, s.joinOptions()); {
	case err == nil:
		s.joined = true
		return nil
	case core.AsFault(err).Code == core.CodeConflict:
		return errIDTaken
	default:
		return err
	}
}
