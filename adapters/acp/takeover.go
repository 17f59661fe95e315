package acp

import (
	"context"
	"errors"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// maxTakeoverQueue is how many envelopes may wait for the outcome of a takeover.
const maxTakeoverQueue = 16

// errIDTaken is the error of a join when another connection has the id of the peer.
var errIDTaken = errors.New("another connection has the id")

// takeover decides which of two connections keeps an agent id. Asking the older one may
// take a while, so it runs beside the reader; envelopes that depend on the outcome wait in
// line. The zero takeover is none. session.mu guards it.
type takeover struct {
	open bool
	line []wire.Envelope // the first is being settled
}

// beginTakeover begins a takeover with the capabilities of the peer. There must be none.
func (s *session) beginTakeover(ctx context.Context, e wire.Envelope) {
	s.mu.Lock()
	s.takeover = takeover{open: true, line: []wire.Envelope{e}}
	s.mu.Unlock()
	s.beside(ctx, s.settle)
}

// waits puts an envelope in line if it must wait for a takeover, and reports whether it
// did. A peer that sends too many gets an error.
func (s *session) waits(e wire.Envelope) (bool, error) {
	if e.Kind != wire.KindCapabilities && (e.Kind != wire.KindPing || e.To != "" && !roster.SameAgent(e.To, wire.HubID)) {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.takeover.open:
		return false, nil
	case len(s.takeover.line) >= maxTakeoverQueue:
		return true, wire.ErrorOf(core.NewFault(core.CodeOverloaded,
			"another connection has the id %s, and it is being asked whether it is still there: wait for the answers to what you sent before", s.peer.id))
	}
	s.takeover.line = append(s.takeover.line, e)
	return true, nil
}

// settle finds out which connection has the id, and then acts on what waited for that.
func (s *session) settle(ctx context.Context) {
	for {
		s.mu.Lock()
		if len(s.takeover.line) == 0 {
			s.takeover = takeover{}
			s.mu.Unlock()
			return
		}
		e := s.takeover.line[0]
		s.takeover.line = s.takeover.line[1:]
		s.mu.Unlock()
		var err error
		if e.Kind == wire.KindCapabilities {
			err = s.introduceBy(ctx, e, s.take)
		} else {
			err = s.ping(ctx, e)
		}
		if err != nil {
			return // the connection has ended, and nothing waits for it any more
		}
	}
}

// take makes the peer the agent of the card even if another connection has its id.
func (s *session) take(ctx context.Context, card core.Card) error {
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

// joinOptions say how the hub is to treat an agent of this dialect.
func (s *session) joinOptions() hub.JoinOptions { return hub.JoinOptions{Probe: s.alive} }

// farewell tells the peer why the hub ends its session if the reason concerns the peer: a
// newer connection replaced it, or its token is no longer valid.
func (s *session) farewell(ctx context.Context, err error) {
	switch f := core.AsFault(err); f.Code {
	case core.CodeConflict, core.CodeUnauthenticated:
		_ = s.refuse(ctx, wire.Envelope{}, f) // the connection ends either way
	}
}
