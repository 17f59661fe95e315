package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// AgentStatus is an agent as others may see it.
type AgentStatus struct {
	core.Card
	Load      core.Load      `json:"load"`
	Principal core.Principal `json:"principal"`
	Since     time.Time      `json:"since"`
	// Vitals are what the agent last said of how it is; nil if it never did.
	Vitals *core.Vitals `json:"vitals,omitempty"`
}

func statusOf(e roster.Entry) AgentStatus {
	return AgentStatus{Card: e.Card, Load: e.Load, Principal: e.Member.Principal(), Since: e.Since, Vitals: e.Vitals}
}

func statusesOf(entries []roster.Entry) []AgentStatus {
	out := make([]AgentStatus, len(entries))
	for i, e := range entries {
		out[i] = statusOf(e)
	}
	return out
}

// Agents returns the agents that are connected, ordered by id.
func (h *Hub) Agents() []AgentStatus { return statusesOf(h.roster.List()) }

// AgentPage returns, ordered by id, the first n agents after an id for which keep is true,
// and how many more there are.
func (h *Hub) AgentPage(after core.AgentID, n int, keep func(core.Card) bool) (page []AgentStatus, more int) {
	entries, more := h.roster.Page(after, n, keep)
	return statusesOf(entries), more
}

// Totals returns the sums over all agents. It costs much less than [Hub.Agents].
func (h *Hub) Totals() roster.Totals { return h.roster.Totals() }

// Match returns the agents that answer for the address, best first.
func (h *Hub) Match(to core.Address) []AgentStatus { return statusesOf(h.roster.Match(to)) }

// Agent returns one agent, by its id or alias.
func (h *Hub) Agent(id core.AgentID) (AgentStatus, bool) {
	e, ok := h.roster.Get(h.roster.Resolve(id))
	if !ok {
		return AgentStatus{}, false
	}
	return statusOf(e), true
}

// Reach returns the agent that an address by the id or alias reaches. It may be a session
// that is in no list before it is given something: see [JoinOptions.OnlyByID].
func (h *Hub) Reach(id core.AgentID) (AgentStatus, bool) {
	e, ok := h.roster.Find(id)
	if !ok {
		return AgentStatus{}, false
	}
	return statusOf(e), true
}

// Nearest returns up to three ids of agents that are similar to id.
func (h *Hub) Nearest(id core.AgentID) []core.AgentID { return h.roster.Nearest(id) }

// member is a session as the roster knows it.
type member Session

func (s *Session) member() *member { return (*member)(s) }

// Principal implements [roster.Member].
func (m *member) Principal() core.Principal { return m.identity.Principal }

// sessionOf returns the session that is a member of the roster; nil for nil.
func sessionOf(m roster.Member) *Session {
	own, _ := m.(*member)
	return (*Session)(own)
}

// Seen notes a sign of life.
func (s *Session) Seen() {
	s.note(func(e *roster.Entry) { e.Load.LastSeen = time.Now() })
}

// SetVitals notes how the agent says it is, which is a sign of life.
func (s *Session) SetVitals(v core.Vitals) {
	s.note(func(e *roster.Entry) { e.Load.LastSeen, e.Vitals = time.Now(), &v })
}

// Missed notes that so many heartbeats of the agent in a row did not come.
func (s *Session) Missed(heartbeats int) {
	s.note(func(e *roster.Entry) {
		if e.Vitals != nil {
			v := *e.Vitals
			v.Missed = heartbeats
			e.Vitals = &v
		}
	})
}

// note changes what the roster has of the agent.
func (s *Session) note(change func(*roster.Entry)) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.closed {
		h.roster.Change(s.id, change)
	}
}
