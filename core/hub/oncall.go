package hub

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// putOnCall lets the session be found by its id, of which there may be several: the
// latest comes first. Callers hold mu.
func (h *Hub) putOnCall(s *Session, card core.Card) {
	now := time.Now()
	s.offer = &roster.Entry{Card: card, OnlyByID: true, Since: now, Load: core.Load{State: core.LoadIdle, LastSeen: now}}
	h.onCall[card.ID] = append(h.onCall[card.ID], s)
	h.aliases.add(card.ID)
	h.topics.Identify(s.subscriber(), s.subscriberID())
}

// takeOffCall undoes putOnCall. Callers hold mu.
func (h *Hub) takeOffCall(s *Session) {
	id := s.offered()
	left := slices.DeleteFunc(h.onCall[id], func(o *Session) bool { return o == s })
	if h.onCall[id] = left; len(left) == 0 {
		delete(h.onCall, id)
		h.forget(id)
	}
}

// offered is the id by which alone the session is found, or "". Callers hold mu.
func (s *Session) offered() core.AgentID {
	if s.offer == nil {
		return ""
	}
	return s.offer.ID
}

// claimed reports whether another session is found by the id alone whose principal
// is somebody else, as far as either has authenticated: he keeps it. Callers hold mu.
func (h *Hub) claimed(s *Session, id core.AgentID) bool {
	return slices.ContainsFunc(h.onCall[id], func(o *Session) bool {
		first, second := o.identity.Principal, s.identity.Principal
		return o != s && (first.Authenticated != second.Authenticated || first.Authenticated && first.ID != second.ID)
	})
}

// answerer returns the session that is the agent of the id, or would be once it is
// given something; nil when there is none. Callers hold mu.
func (h *Hub) answerer(id core.AgentID) *Session {
	if s := h.agents[id]; s != nil {
		return s
	}
	if all := h.onCall[id]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// find returns whom an address by the id or alias reaches, or would once it is given
// something. Callers hold mu.
func (h *Hub) find(id core.AgentID) (roster.Entry, bool) {
	id = h.resolve(id)
	if s := h.answerer(id); s != nil && s.id == "" {
		return *s.offer, true
	}
	return h.roster.Get(id)
}

// workless reports whether an agent has nothing to do. Callers hold Hub.mu.
func (s *Session) workless() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.work) == 0 && len(s.queue) == 0
}

// Reach returns whom an address by the id or alias reaches: an agent, or one who
// becomes an agent by being given something (see [JoinOptions.OnlyByID]) and is in no list
// before.
func (h *Hub) Reach(id core.AgentID) (AgentStatus, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.find(id)
	if !ok {
		return AgentStatus{}, false
	}
	return h.statusOf(e), true
}
