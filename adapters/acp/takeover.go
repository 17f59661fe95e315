package acp

import (
	"context"
	"errors"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// maxTakeoverQueue is how many envelopes may wait for the outcome of a takeover.
const maxTakeoverQueue = 16

// errIDTaken is the error of a join when another connection has the id of the peer.
var errIDTaken = errors.New("another connection has the id")

// takeover decides which of two connections keeps an agent id. Probing the older one may
// take a while, so it runs beside the reader; envelopes that depend on the outcome wait in
// a queue. In the zero takeover none is under way. session.mu guards it.
type takeover struct {
	open  bool
	queue fifo.Queue[wire.Envelope]
}

// beginTakeover begins a takeover with the capabilities of the peer. None may be under way.
func (s *session) beginTakeover(ctx context.Context, e wire.Envelope) {
	s.mu.Lock()
	s.takeover.open = true
	s.takeover.queue.Push(e)
	s.mu.Unlock()
	s.goAsync(ctx, s.resolveTakeover)
}

// enqueue queues an envelope that must wait for a takeover, and reports whether it must. A
// peer that sends too many gets an error.
func (s *session) enqueue(e wire.Envelope) (bool, error) {
	if e.Kind != wire.KindCapabilities && (e.Kind != wire.KindPing || e.To != "" && !roster.SameAgent(e.To, wire.HubID)) {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.takeover.open:
		return false, nil
	case s.takeover.queue.Len() >= maxTakeoverQueue:
		return true, wire.ErrorOf(core.NewFault(core.CodeOverloaded,
			"another connection has the id %s, and it is being asked whether it is still there: wait for the answers to what you sent before", s.peer.id))
	}
	s.takeover.queue.Push(e)
	return true, nil
}

// resolveTakeover finds out which connection keeps the id, then handles the queue.
func (s *session) resolveTakeover(ctx context.Context) {
	for {
		s.mu.Lock()
		e, ok := s.takeover.queue.Pop()
		s.takeover.open = ok
		s.mu.Unlock()
		if !ok {
			return
		}
		var err error
		if e.Kind == wire.KindCapabilities {
			err = s.declareAgentBy(ctx, e, s.replace)
		} else {
			err = s.ping(ctx, e)
		}
		if err != nil {
			return // the connection has ended
		}
	}
}

// replace makes the peer the agent of the card even if another connection has its id and
// no longer answers.
func (s *session) replace(ctx context.Context, card core.Card) error {
	err := s.join(ctx, card)
	if !errors.Is(err, errIDTaken) {
		return err
	}
	if err = s.self.Take(ctx, card, s.joinOptions()); err == nil {
		s.mu.Lock()
		s.joined = true
		s.mu.Unlock()
	}
	return err
}

// joinOptions returns the options with which the peer joins as an agent.
func (s *session) joinOptions() hub.JoinOptions { return hub.JoinOptions{Probe: s.probe} }

// farewell tells the peer why the hub ends its session if the reason concerns the peer: a
// newer connection replaced it, or its token is no longer valid.
func (s *session) farewell(ctx context.Context, err error) {
	switch f := core.AsFault(err); f.Code {
	case core.CodeConflict, core.CodeUnauthenticated:
		_ = s.refuse(ctx, wire.Envelope{}, f) // the connection ends either way
	}
}
