package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// probeTime is how long the first of two connections that nobody authenticated has
// to show that it is still there.
const probeTime = 2 * time.Second

// Take is [Session.Join] for an id that another connection may have. Who of the two
// gets it follows from who they are:
//
//   - the same principal, authenticated: the newer one; the older is closed, with a
//     conflict Fault that says so, and its tasks go where those of an agent go that
//     left, to the newer one among others;
//   - different principals, one of them authenticated: the older one;
//   - nobody authenticated: the older one if it answers [JoinOptions.Probe] in time, else
//     the newer one.
//
// It returns what Join returns: a conflict Fault where the older one keeps the id.
// It waits for the probe, so that it is not for the loop that reads a connection. When
// ctx ends its cause is returned, once the probe that is under way has come to its end.
func (s *Session) Take(ctx context.Context, card core.Card, opts JoinOptions) error {
	var left []orphan
	defer func() {
		for _, o := range left {
			if s.hub.route(o.job) != nil {
				o.job.End(core.Failed{Fault: o.why})
			}
		}
	}()
	for {
		err := s.Join(card, opts)
		if err == nil || core.AsFault(err).Code != core.CodeConflict {
			return err
		}
		by, vacated := s.hub.holder(s, card.ID)
		if by == nil {
			if s.agentID() != "" || !s.mayHave(card.ID, opts) {
				return err // it is somebody already, which is its own conflict, or may not be
			}
			continue // the other one has left meanwhile
		}
		if keeps, waited := s.yields(ctx, by); waited != nil {
			return waited
		} else if keeps {
			return err
		}
		left = append(left, by.close(core.NewFault(core.CodeConflict, "a newer connection took the place of agent %s", card.ID))...)
		select {
		case <-vacated:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// holder returns the session that has an id which s wants, or nil, and what is
// closed once it is gone.
func (h *Hub) holder(s *Session, id core.AgentID) (by *Session, vacated <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if by = sessionOf(h.roster.Member(id)); by == nil || by == s {
		return nil, nil
	}
	return by, by.vacated
}

// mayHave reports whether nothing keeps the session from the id but who had it.
func (s *Session) mayHave(id core.AgentID, opts JoinOptions) bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	own := s.standby
	return (own == "" || own == id && !opts.OnlyByID) && !s.hub.roster.Reserved(id, s.member())
}

// yields reports whether by, who has the id that s wants, keeps it. The error is the
// cause of ctx.
func (s *Session) yields(ctx context.Context, by *Session) (keeps bool, err error) {
	s.hub.mu.Lock()
	leaving, probe := by.closed, by.opts.Probe
	s.hub.mu.Unlock()
	first, second := by.identity.Principal, s.identity.Principal
	switch {
	case leaving:
		return false, nil
	case first.Authenticated && second.Authenticated:
		return first.ID != second.ID, nil
	case first.Authenticated || second.Authenticated || probe == nil:
		return true, nil
	}
	// A transport may have to drop the connection over which a ping was given up half
	// written: that s leaves is no reason to do that to by.
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	alive := probe(asked) == nil
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if !alive {
		s.hub.Count("agent.replaced.silent")
	}
	return alive, nil
}
