package hub

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// Join makes the session an agent: at once or, with [JoinOptions.OnlyByID], when it gets a
// task. It returns an invalid Fault for a bad id, a too_large Fault for a card over the limit,
// a conflict Fault when the id is taken or the session is an agent already, and an unreachable
// Fault when the hub is stopping.
func (s *Session) Join(card core.Card, opts JoinOptions) error {
	return s.doFunc(core.Join{Card: card}, func() error { return s.join(card, opts) })
}

func (s *Session) join(card core.Card, opts JoinOptions) error {
	if err := core.CheckAgentID(card.ID); err != nil {
		return err
	}
	if err := s.hub.checkCard(card); err != nil {
		return err
	}
	if p := s.identity.Principal; !p.MayRegister(card.ID) {
		return core.NewFault(core.CodeNotAuthorized, "%s may not be the agent %s: the operator can allow it with agents: [%q] at this credential", p.ID, card.ID, card.ID)
	}
	card = clean(card)
	h := s.hub
	policy.Anticipate(h.authorizer, card)
	if opts.OnlyByID || s.isAgent(card.ID) {
		return s.enter(card, opts)
	}
	if h.remote != nil {
		if err := h.remote.Join(h.ctx, s.entryOf(card, opts), s.number, s.identity.Principal); err != nil {
			return err
		}
	}
	err := s.enter(card, opts)
	if err == nil {
		h.seek(card.ID, nil)
	} else if h.remote != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.remote.Agent(card.ID, s.number, s.identity.Principal, nil)
	}
	return err
}

// entryOf returns an agent that is about to join as the roster will have it.
func (s *Session) entryOf(card core.Card, opts JoinOptions) roster.Entry {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	e := roster.Entry{Card: s.hub.limitConcurrency(s, card, opts.Concurrent), Since: time.Now()}
	if opts.Starting {
		e.Child = &core.Child{State: core.ChildStarting}
	}
	return e
}

// isAgent reports whether the session is the agent with that id everywhere.
func (s *Session) isAgent(id core.AgentID) bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.id == id && !s.opts.OnlyByID
}

// enter is join with an id that is the session's in the cluster, or with one that only this hub knows.
func (s *Session) enter(card core.Card, opts JoinOptions) error {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := s.mayEnter(card.ID, opts); err != nil {
		return err
	}
	if opts.OnlyByID {
		s.opts, s.standby = opts, card.ID
		h.roster.AddStandby(card, s.member())
		h.topics.Identify(s.peer(), s.subscriberID())
		return nil
	}
	if s.id != "" {
		s.opts = opts
		h.replaceCard(s, card)
		return nil
	}
	if by := sessionOf(h.roster.Member(card.ID)); by != nil && by.opts.OnlyByID && by.isIdle() {
		h.removeAgent(by, core.NewFault(core.CodeConflict, "another agent has its id now"))
		by.id = ""
	}
	if err := h.makeAgent(s, card, opts); err != nil {
		return err
	}
	h.dispatch(s)
	return nil
}

// mayEnter returns why the session may not have an id, nil if it may. Callers hold Hub.mu.
func (s *Session) mayEnter(id core.AgentID, opts JoinOptions) error {
	h := s.hub
	switch {
	case s.closed:
		return s.ended()
	case h.end.reason != "":
		return h.stopping()
	case s.id != "" && !s.opts.OnlyByID:
		return core.NewFault(core.CodeConflict, "this connection is agent %s already", s.id)
	case s.standby != "" && (s.standby != id || opts.OnlyByID):
		return core.NewFault(core.CodeConflict, "this connection is known as %s already", s.standby)
	case h.roster.Reserved(id, s.member()):
		return core.NewFault(core.CodeConflict, "the id %s belongs to somebody else, who is connected: choose another id, or wait until it has left", id)
	}
	return nil
}

// checkCard returns a too_large Fault for a card over the limit, and counts it.
func (h *Hub) checkCard(card core.Card) error {
	err := card.Check(h.limits.CardBytes)
	if err != nil {
		h.Count("refused.card")
	}
	return err
}

// Update replaces the card of the agent, except its id. It returns a too_large Fault for a card
// over the limit, and a conflict Fault when the session is no agent or the id differs.
func (s *Session) Update(card core.Card) error {
	h := s.hub
	if err := h.checkCard(card); err != nil {
		return err
	}
	policy.Anticipate(h.authorizer, card)
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed || s.id == "" || s.id != card.ID {
		return core.NewFault(core.CodeConflict, "this connection is agent %q, not %q", s.id, card.ID)
	}
	h.replaceCard(s, clean(card))
	return nil
}

func clean(c core.Card) core.Card {
	if c.Name == "" {
		c.Name = string(c.ID)
	}
	return c
}

// probeTime is how long the older of two unauthenticated connections has to show that it is
// alive.
const probeTime = 2 * time.Second

// Take is [Session.Join] for an id that another connection may have. Which of the two gets
// the id depends on their principals:
//
//   - the same, authenticated: the newer connection; the older one is closed with a conflict
//     Fault, and its tasks are reassigned, also to the newer one;
//   - different, one of them authenticated: the older connection;
//   - neither authenticated: the older connection if it answers [JoinOptions.Probe] in time,
//     else the newer one.
//
// It returns the errors of Join: a conflict Fault where the older connection keeps the id.
// It waits for the probe, and must not be called from the loop that reads a connection.
// When ctx ends it returns the cause, once a running probe has finished.
func (s *Session) Take(ctx context.Context, card core.Card, opts JoinOptions) error {
	var left []orphan
	defer func() {
		for _, o := range left {
			s.hub.passOn(o.job, o.why)
		}
	}()
	for {
		err := s.Join(card, opts)
		if err == nil || core.AsFault(err).Code != core.CodeConflict {
			return err
		}
		by, gone := s.hub.holder(s, card.ID)
		if by == nil {
			if s.AgentID() != "" || s.hub.isElsewhere(card.ID) || !s.mayHave(card.ID, opts) {
				return err // the conflict is not with another connection
			}
			continue // the other one has left in the meantime
		}
		if keeps, waited := s.hub.yields(ctx, by, s.identity.Principal); waited != nil {
			return waited
		} else if keeps {
			return err
		}
		left = append(left, by.close(core.NewFault(core.CodeConflict, "a newer connection took the place of agent %s", card.ID))...)
		select {
		case <-gone:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// holder returns the session that has an id which s wants, or nil, and a channel that is
// closed once it has left.
func (h *Hub) holder(s *Session, id core.AgentID) (by *Session, gone <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if by = sessionOf(h.roster.Member(id)); by == nil || by == s {
		return nil, nil
	}
	return by, by.left
}

// isElsewhere reports whether an agent of another hub has the id.
func (h *Hub) isElsewhere(id core.AgentID) bool {
	e, ok := h.roster.Get(id)
	return ok && e.Hub != ""
}

// mayHave reports whether the session may have the id once nobody else has it.
func (s *Session) mayHave(id core.AgentID, opts JoinOptions) bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	own := s.standby
	return (own == "" || own == id && !opts.OnlyByID) && !s.hub.roster.Reserved(id, s.member())
}

// yields reports whether by, which has an id that another principal wants, keeps it. The error is
// the cause of ctx.
func (h *Hub) yields(ctx context.Context, by *Session, second core.Principal) (keeps bool, err error) {
	if ctx.Err() != nil { // who wants the id has given up: by keeps it
		return false, context.Cause(ctx)
	}
	h.mu.Lock()
	leaving, probe := by.closed, by.opts.Probe
	h.mu.Unlock()
	first := by.identity.Principal
	switch {
	case leaving:
		return false, nil
	case first.Authenticated && second.Authenticated:
		return first.ID != second.ID, nil
	case first.Authenticated || second.Authenticated || probe == nil:
		return true, nil
	}
	// A transport may have to drop a connection whose ping was abandoned half written. The
	// end of the other one is no reason to do that to by.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	alive := probe(limited) == nil
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if !alive {
		h.Count("agent.replaced.silent")
	}
	return alive, nil
}

// expire closes the session when the credential of its principal expires.
func (s *Session) expire() {
	if until := s.identity.Principal.Until; !until.IsZero() {
		s.expiry = time.AfterFunc(time.Until(until), func() {
			s.Close(core.NewFault(core.CodeUnauthenticated, "Token has expired"))
		})
	}
}

// revoked is the reason for closing a session whose credential was revoked.
func revoked() *core.Fault {
	return core.NewFault(core.CodeUnauthenticated, "the token was revoked")
}

// Expel closes the sessions of all authenticated principals for which known is false, and
// those that such principals open later.
func (h *Hub) Expel(known func(p core.Principal) bool) {
	var gone []*Session
	h.mu.Lock()
	h.known = known
	for s := range h.sessions {
		if p := s.identity.Principal; p.Authenticated && !known(p) {
			gone = append(gone, s)
		}
	}
	h.mu.Unlock()
	for _, s := range gone {
		s.Close(revoked())
	}
}
