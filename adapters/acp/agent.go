package acp

import (
	"context"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// discover asks the peer for its capabilities.
func (s *session) discover(ctx context.Context) error {
	e := s.newEnvelope(wire.KindDiscover, "", wire.Discover{Extensions: wire.Extensions()})
	s.mu.Lock()
	s.discoverID = e.ID
	s.mu.Unlock()
	return s.send(ctx, e)
}

// declareAgent handles the peer's capabilities, which make it an agent. Before, it can be
// addressed only by its id.
func (s *session) declareAgent(ctx context.Context, e wire.Envelope) error {
	return s.declareAgentBy(ctx, e, s.join)
}

// declareAgentBy is declareAgent with a given join. If that returns errIDTaken, a takeover
// begins, which answers the envelope later.
func (s *session) declareAgentBy(ctx context.Context, e wire.Envelope, join func(context.Context, core.Card) error) error {
	var c wire.Capabilities
	err := e.Read(&c)
	if err == nil {
		s.noteExtensions(c.Extensions) // before the first task
		err = join(ctx, c.Card(s.peer.id, e.Content()))
	}
	if errors.Is(err, errIDTaken) {
		s.beginTakeover(ctx, e)
		return nil
	}
	if err != nil {
		return s.refuseIf(ctx, e, err)
	}
	load := core.LoadIdle
	if c.MaxConcurrentTasks != nil && *c.MaxConcurrentTasks == 0 {
		load = core.LoadDraining
	}
	s.mu.Lock()
	s.draining, s.overloaded = load == core.LoadDraining, false
	s.mu.Unlock()
	s.self.SetLoad(load)
	return nil
}

// noteExtensions notes the extensions that the peer declares. None is ever withdrawn.
func (s *session) noteExtensions(extensions []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = s.progress || slices.Contains(extensions, wire.ExtensionProgress)
	s.traces = s.traces || slices.Contains(extensions, wire.ExtensionTrace)
}

// withTrace returns an envelope with the trace context of its task, if the peer declared the
// extension.
func (s *session) withTrace(raw []byte, t *task.Task) []byte {
	s.mu.Lock()
	wanted := s.traces
	s.mu.Unlock()
	if !wanted {
		return raw
	}
	return wire.WithTrace(raw, t.Trace())
}

// join makes the peer an agent with the card, or updates its card. It returns errIDTaken
// when another connection has the id.
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
