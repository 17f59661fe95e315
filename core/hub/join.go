package hub

import (
	"cmp"

	"github.com/dragoman-hub/dragoman/core"
)

// Join makes the session the agent of the card, at once or, with [JoinOptions.OnlyByID],
// when it is addressed. It returns an invalid Fault for an id that cannot be one, a
// conflict Fault when the id is taken or the session is an agent already, and an
// unreachable one when the hub is stopping.
func (s *Session) Join(card core.Card, opts JoinOptions) error {
	return s.doing(core.Join{Card: card}, func() error { return s.join(card, opts) })
}

func (s *Session) join(card core.Card, opts JoinOptions) error {
	if err := core.CheckAgentID(card.ID); err != nil {
		return err
	}
	card = clean(card)
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case s.closed:
		return core.NewFault(core.CodeUnreachable, "the connection has ended")
	case h.draining != "":
		return core.NewFault(core.CodeUnreachable, "the hub is stopping (%s): come again once it is back", h.draining)
	case s.id != "" && !s.opts.OnlyByID:
		return core.NewFault(core.CodeConflict, "this connection is agent %s already", s.id)
	case s.standby != "" && (s.standby != card.ID || opts.OnlyByID):
		return core.NewFault(core.CodeConflict, "this connection is known as %s already", s.standby)
	}
	if h.roster.Reserved(card.ID, s.member()) {
		return core.NewFault(core.CodeConflict, "the id %s belongs to somebody else, who is connected: choose another id, or wait until he has left", card.ID)
	}
	if opts.OnlyByID {
		s.opts, s.standby = opts, card.ID
		h.roster.AddStandby(card, s.member())
		h.topics.Identify(s.subscriber(), s.subscriberID())
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

// Update replaces the card of the agent that the session is; its id stays. It
// returns a conflict Fault when the session is no agent or the id differs.
func (s *Session) Update(card core.Card) error {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed || s.id == "" || s.id != card.ID {
		return core.NewFault(core.CodeConflict, "this connection is agent %q, not %q", s.id, card.ID)
	}
	h.replaceCard(s, clean(card))
	return nil
}

// makeAgent makes the session an agent. Callers hold mu.
func (h *Hub) makeAgent(s *Session, card core.Card, opts JoinOptions) error {
	before := s.opts
	s.id, s.opts = card.ID, opts
	limited := h.limitConcurrency(s, card)
	if err := h.roster.Add(limited, s.member(), opts.OnlyByID); err != nil {
		s.id, s.opts = "", before
		return err
	}
	s.vacated = make(chan struct{})
	h.announce(s, card, limited)
	h.topics.Identify(s.subscriber(), s.subscriberID())
	h.log.Info("agent joined", "agent", card.ID, "dialect", card.Dialect, "name", card.Name)
	return nil
}

// replaceCard replaces the card of an agent. Callers hold mu.
func (h *Hub) replaceCard(s *Session, card core.Card) {
	limited := h.limitConcurrency(s, card)
	h.roster.SetCard(limited, s.opts.OnlyByID)
	h.announce(s, card, limited)
	h.dispatch(s)
}

// announce stores the card that an agent declared, and as its settings limit it. Callers
// hold mu.
func (h *Hub) announce(s *Session, declared, limited core.Card) {
	s.declared = declared.MaxConcurrent
	s.mu.Lock()
	s.card = limited
	s.mu.Unlock()
	if h.observer != nil {
		h.observer.Joined(limited)
	}
}

// limitConcurrency returns the card with as many tasks at once as the settings of the agent
// allow. Callers hold mu.
func (h *Hub) limitConcurrency(s *Session, card core.Card) core.Card {
	limit := h.settings.of(s.id, s.identity.Dialect).MaxConcurrent
	switch {
	case card.MaxConcurrent < 1:
		card.MaxConcurrent = cmp.Or(limit, s.opts.Concurrent)
	case limit > 0:
		card.MaxConcurrent = min(limit, card.MaxConcurrent)
	}
	card.MaxConcurrent = max(1, card.MaxConcurrent)
	return card
}

// applySettings puts changed settings of an agent into force, and tells it. Callers hold mu.
func (h *Hub) applySettings(s *Session, reason string) {
	declared := s.card
	declared.MaxConcurrent = s.declared
	s.inbox.push(Batch{SettingsChanged: &SettingsChange{
		AgentSettings: h.settings.of(s.id, s.identity.Dialect),
		Concurrent:    h.limitConcurrency(s, declared).MaxConcurrent, Reason: reason,
	}})
	h.replaceCard(s, declared)
}

// removeAgent takes an agent out of the roster. Callers hold mu.
func (h *Hub) removeAgent(s *Session, reason *core.Fault) {
	h.roster.Remove(s.id)
	close(s.vacated)
	if h.observer != nil {
		h.observer.Left(s.id)
	}
	log := h.log
	if hidden := detail(reason); hidden != "" {
		log = log.With("detail", hidden)
	}
	log.Info("agent left", "agent", s.id, "reason", reason.Message)
}

func clean(c core.Card) core.Card {
	if c.Name == "" {
		c.Name = string(c.ID)
	}
	return c
}

// isIdle reports whether an agent has nothing to do. Callers hold Hub.mu.
func (s *Session) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.work) == 0 && len(s.queue) == 0
}
