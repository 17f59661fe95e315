package acp

import (
	"context"
	"errors"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// contestMost is how many envelopes may wait until it is known who of two
// connections has an id.
const contestMost = 16

// errContested says that another connection has the id of the peer.
var errContested = errors.New("another connection has the id")

// contest is the question whose an id is that another connection has. It is settled
// beside the reader, since it may take a while; what proves that the peer is in, or
// depends on it, waits in line. The zero contest is none. session.mu guards it.
type contest struct {
	open bool
	line []wire.Envelope // the first is being settled
}

// contend begins a contest with the capabilities of the peer, which waits for none
// to be settled before.
func (s *session) contend(ctx context.Context, e wire.Envelope) {
	s.mu.Lock()
	s.contest = contest{open: true, line: []wire.Envelope{e}}
	s.mu.Unlock()
	s.beside(ctx, s.settle)
}

// waits puts an envelope in line that has to wait for a contest, and reports whether
// it did. A peer that sends too many gets an error.
func (s *session) waits(e wire.Envelope) (bool, error) {
	if e.Kind != wire.KindCapabilities && (e.Kind != wire.KindPing || e.To != "" && !hub.SameAgent(e.To, wire.HubID)) {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.contest.open:
		return false, nil
	case len(s.contest.line) >= contestMost:
		return true, wire.ErrorOf(core.NewFault(core.CodeOverloaded,
			"another connection has the id %s, and it is being asked whether it is still there: wait for the answers to what you sent before", s.who.id))
	}
	s.contest.line = append(s.contest.line, e)
	return true, nil
}

// settle finds out who of the two has the id, and then acts on what waited for it.
func (s *session) settle(ctx context.Context) {
	for {
		s.mu.Lock()
		if len(s.contest.line) == 0 {
			s.contest = contest{}
			s.mu.Unlock()
			return
		}
		e := s.contest.line[0]
		s.contest.line = s.contest.line[1:]
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

// take makes the peer the agent of the card though another connection may have its
// id.
func (s *session) take(ctx context.Context, card core.Card) error {
	err := s.join(ctx, card)
	if !errors.Is(err, errContested) {
		return err
	}
	if err = s.self.Take(ctx, card, s.joinOptions()); err == nil {
		s.mu.Lock()
		s.joined = true
		s.mu.Unlock()
	}
	return err
}

// joinOptions are how this dialect takes what it has no words for.
func (s *session) joinOptions() hub.JoinOptions { return hub.JoinOptions{Probe: s.alive} }

// farewell tells the peer why the hub ends its session, where that is about the
// peer: a newer connection has its place, or its token is good no longer.
func (s *session) farewell(ctx context.Context, err error) {
	switch f := core.AsFault(err); f.Code {
	case core.CodeConflict, core.CodeUnauthenticated:
		_ = s.refuse(ctx, wire.Envelope{}, f) // the connection ends either way
	}
}
