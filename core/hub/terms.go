package hub

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// Terms are what an operator sets of how an agent works. The zero Terms set nothing.
type Terms struct {
	// MaxConcurrent bounds how many tasks the agent runs at once; zero leaves that to
	// the agent. It never makes it more than the agent said it can do, but one that
	// said nothing gets it whole.
	MaxConcurrent int
	// Heartbeat is how often an agent shows that it is well, where its dialect has a
	// word for that; zero leaves it to the dialect.
	Heartbeat time.Duration
}

// Imposed is what a session is told of new terms: those in force, how many tasks its
// agent runs at once now, and why.
type Imposed struct {
	Terms
	Running int
	Reason  string
}

// terms are those of single agents, which outlast their connections, and those of all
// agents of a dialect. Hub.mu guards them.
type terms struct {
	agents   map[core.AgentID]Terms
	dialects map[string]Terms
	keep     func(map[core.AgentID]Terms) error // nil for nothing that remembers them
	keeping  sync.Mutex                         // locked before Hub.mu
}

// Configure sets how an agent works that is here, tells it, and returns what it is now.
// The settings hold for whoever has the id, and for the next hub where they are kept. It
// returns a not_authorized Fault for who is no operator, an unknown_agent Fault if nobody
// has the id, and an internal Fault where they are in force but could not be kept.
func (h *Hub) Configure(p core.Principal, c core.Configure) (AgentStatus, error) {
	o, err := h.do(context.Background(), nil, core.Call{Principal: p, Command: c}, nil)
	if err != nil {
		return AgentStatus{}, err
	}
	return *o.agent, nil
}

func (h *Hub) configure(c core.Configure) (*AgentStatus, error) {
	h.mu.Lock()
	id := h.roster.Resolve(c.Agent)
	s := sessionOf(h.roster.Member(id))
	if s == nil || s.closed {
		h.mu.Unlock()
		return nil, core.NewFault(core.CodeUnknownAgent, "no agent %q is here", id)
	}
	t := h.terms.agents[id]
	if c.MaxConcurrent != nil {
		t.MaxConcurrent = *c.MaxConcurrent
	}
	if c.Heartbeat != nil {
		t.Heartbeat = *c.Heartbeat
	}
	if h.terms.agents == nil {
		h.terms.agents = map[core.AgentID]Terms{}
	}
	if h.terms.agents[id] = t; t == (Terms{}) {
		delete(h.terms.agents, id)
	}
	h.impose(s, c.Reason)
	h.mu.Unlock()
	h.log.Info("the settings of an agent were changed", "agent", id, "max_concurrent", t.MaxConcurrent, "heartbeat", t.Heartbeat.String(), "reason", c.Reason)
	if err := h.keepTerms(); err != nil {
		h.log.Error("the settings of agents could not be kept: they end with the hub", "error", err)
		return nil, core.NewFault(core.CodeInternal, "the terms of agent %s are in force, but could not be kept: they end with the hub", id).Because(err)
	}
	a, _ := h.Agent(id)
	return &a, nil
}

// keepTerms has the terms of agents remembered as they are now. What is kept last is what
// was set last.
func (h *Hub) keepTerms() error {
	if h.terms.keep == nil {
		return nil
	}
	h.terms.keeping.Lock()
	defer h.terms.keeping.Unlock()
	h.mu.Lock()
	all := maps.Clone(h.terms.agents)
	h.mu.Unlock()
	return h.terms.keep(all)
}

// ImposeOn sets the terms of all agents of a dialect, where they have none of their
// own, and tells those that are here.
func (h *Hub) ImposeOn(dialect string, t Terms, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.terms.dialects[dialect] == t {
		return
	}
	if h.terms.dialects == nil {
		h.terms.dialects = map[string]Terms{}
	}
	h.terms.dialects[dialect] = t
	for s := range h.sessions {
		if s.id != "" && s.identity.Dialect == dialect {
			h.impose(s, reason)
		}
	}
}

// Terms returns the terms in force for the agent that the session is.
func (s *Session) Terms() Terms {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.termsOf(s)
}

// termsOf are the terms in force. Callers hold mu.
func (h *Hub) termsOf(s *Session) Terms {
	own, all := h.terms.agents[s.id], h.terms.dialects[s.identity.Dialect]
	return Terms{MaxConcurrent: cmp.Or(own.MaxConcurrent, all.MaxConcurrent), Heartbeat: cmp.Or(own.Heartbeat, all.Heartbeat)}
}

// impose puts the terms of an agent into force. Callers hold mu.
func (h *Hub) impose(s *Session, reason string) {
	s.mu.Lock()
	card := s.card
	s.mu.Unlock()
	card.MaxConcurrent = s.said
	card = h.underTerms(s, card)
	h.roster.Change(s.id, func(e *roster.Entry) { e.MaxConcurrent = card.MaxConcurrent })
	s.mu.Lock()
	s.card = card
	s.mu.Unlock()
	if h.observer != nil {
		h.observer.Joined(card)
	}
	s.inbox.impose(&Imposed{Terms: h.termsOf(s), Running: card.MaxConcurrent, Reason: reason})
	h.dispatch(s)
}

// underTerms is a card as the terms leave it. Callers hold mu.
func (h *Hub) underTerms(s *Session, card core.Card) core.Card {
	s.said = card.MaxConcurrent
	limit := h.termsOf(s).MaxConcurrent
	switch {
	case card.MaxConcurrent < 1:
		card.MaxConcurrent = cmp.Or(limit, s.opts.Concurrent)
	case limit > 0:
		card.MaxConcurrent = min(limit, card.MaxConcurrent)
	}
	card.MaxConcurrent = max(1, card.MaxConcurrent)
	return card
}

// impose makes Next return new terms. Of several that were not read yet the last
// count.
func (f *inbox) impose(i *Imposed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.imposed = i
	f.signal()
}
