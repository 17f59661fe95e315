package hub

import (
	"math"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// AgentStatus describes a connected agent.
type AgentStatus struct {
	core.Card
	Load      core.Load      `json:"load"`
	Principal core.Principal `json:"principal"`
	Since     time.Time      `json:"since"`
	// Hub is the name of the hub that has its connection; "" for this one.
	Hub string `json:"hub,omitempty"`
	// Vitals are the last health report of the agent; nil before the first.
	Vitals *core.Vitals `json:"vitals,omitempty"`
	// Child is the state of an agent that the hub runs itself, else nil.
	Child *core.Child `json:"child,omitempty"`
	// Refused is the state of another agent, of the settings, that could not join because this
	// one has its id, else nil.
	Refused *core.Child `json:"refused,omitempty"`
}

func statusOf(e roster.Entry) AgentStatus {
	return AgentStatus{Card: e.Card, Load: e.Load, Principal: e.Member.Principal(), Since: e.Since, Hub: e.Hub, Vitals: e.Vitals, Child: e.Child}
}

// shownTo returns what the principal may see of the status: only who may operate an agent sees
// how the hub runs it, beyond the state and whether that changes by itself, and nobody sees an agent in its fallback
// that is hidden otherwise.
func (h *Hub) shownTo(p core.Principal, a AgentStatus) AgentStatus {
	a = h.withRefused(a)
	a.Fallback = h.found(p, a.Fallback)
	if a.Child == nil && a.Refused == nil || h.authorizer.May(p, core.RightOperate, policy.Object{Target: policy.TargetOf(a.Card)}) {
		return a
	}
	for _, c := range []**core.Child{&a.Child, &a.Refused} {
		if *c != nil {
			*c = &core.Child{State: (*c).State, RetryMS: (*c).RetryMS}
		}
	}
	return a
}

// shown returns the statuses as the principal may see them.
func (h *Hub) shown(all []AgentStatus, p core.Principal) []AgentStatus {
	for i := range all {
		all[i] = h.shownTo(p, all[i])
	}
	return all
}

// withRefused adds the agent of the settings that could not join.
func (h *Hub) withRefused(a AgentStatus) AgentStatus {
	if h.refusedChild != nil {
		a.Refused = h.refusedChild(a.ID)
	}
	return a
}

func statusesOf(entries []roster.Entry) []AgentStatus {
	out := make([]AgentStatus, len(entries))
	for i, e := range entries {
		out[i] = statusOf(e)
	}
	return out
}

// Agents returns the agents that are connected and that the principal may see, ordered by id.
// What is written of them needs a bound of its own.
func (h *Hub) Agents(p core.Principal) []AgentStatus {
	all, _ := h.agentPage(p, "", math.MaxInt, math.MaxInt, func(core.Card) bool { return true })
	return all
}

// PageBytes bounds the cards on a page of agents: about what they take as JSON.
const PageBytes = 4 << 20

// AgentPage returns the first n agents after an id for which keep is true and that the
// principal may see, ordered by id, and how many more there are. Their cards have at most
// [PageBytes] together, but there is at least one agent on a page.
func (h *Hub) AgentPage(p core.Principal, after core.AgentID, n int, keep func(core.Card) bool) (page []AgentStatus, more int) {
	return h.agentPage(p, after, n, PageBytes, keep)
}

func (h *Hub) agentPage(p core.Principal, after core.AgentID, n, bytes int, keep func(core.Card) bool) (page []AgentStatus, more int) {
	page = []AgentStatus{}
	_ = h.list(p, core.ListAgents, func() error { // without the right the list is empty
		var entries []roster.Entry
		entries, more = h.roster.Page(after, n, func(e *roster.Entry) bool { return keep(e.Card) && h.sees(p, e) })
		if fit := fitting(entries, bytes); fit < len(entries) {
			more += len(entries) - fit
			entries = entries[:fit]
		}
		page = h.shown(statusesOf(entries), p)
		return nil
	})
	return page, more
}

// fitting returns how many of the entries, at least one, have cards of at most so many bytes.
func fitting(entries []roster.Entry, bytes int) int {
	for i := range entries {
		if bytes -= entries[i].Size(); bytes < 0 {
			return max(1, i)
		}
	}
	return len(entries)
}

// Totals returns the sums over all agents that the principal may see. It costs much less than
// [Hub.Agents].
func (h *Hub) Totals(p core.Principal) roster.Totals {
	return h.roster.Totals(func(e *roster.Entry) bool { return h.sees(p, e) })
}

// Match returns the agents that answer for the address and that the principal may see, best
// first.
func (h *Hub) Match(p core.Principal, to core.Address) []AgentStatus {
	entries := slices.DeleteFunc(h.roster.Match(to), func(e roster.Entry) bool { return !h.sees(p, &e) })
	return h.shown(statusesOf(entries), p)
}

// Agent returns one agent, by its id or alias, if the principal may see it.
func (h *Hub) Agent(p core.Principal, id core.AgentID) (AgentStatus, bool) {
	e, ok := h.roster.Get(h.roster.Resolve(id))
	return h.status(p, e, ok)
}

// Reach returns the agent that an address with the id or alias reaches, if the principal may
// see it. It may be a session that becomes an agent only when it gets a task: see
// [JoinOptions.OnlyByID].
func (h *Hub) Reach(p core.Principal, id core.AgentID) (AgentStatus, bool) {
	e, ok := h.roster.Find(id)
	return h.status(p, e, ok)
}

func (h *Hub) status(p core.Principal, e roster.Entry, ok bool) (AgentStatus, bool) {
	if !ok || !h.sees(p, &e) {
		return AgentStatus{}, false
	}
	return h.shownTo(p, statusOf(e)), true
}

// Nearest returns up to three ids similar to id, of agents that the principal may see.
func (h *Hub) Nearest(p core.Principal, id core.AgentID) []core.AgentID {
	return slices.DeleteFunc(h.roster.Nearest(id), func(near core.AgentID) bool {
		e, ok := h.roster.Get(near)
		return !ok || !h.sees(p, &e)
	})
}

// member is a session as the roster sees it.
type member Session

func (s *Session) member() *member { return (*member)(s) }

// Principal implements [roster.Member].
func (m *member) Principal() core.Principal { return m.identity.Principal }

// sessionOf returns the session of a member of the roster; nil for nil.
func sessionOf(m roster.Member) *Session {
	own, _ := m.(*member)
	return (*Session)(own)
}

// Seen records that the agent is alive.
func (s *Session) Seen() {
	s.note(func(e *roster.Entry) { e.Load.LastSeen = time.Now() })
}

// SetVitals records a health report of the agent, and that it is alive.
func (s *Session) SetVitals(v core.Vitals) {
	s.note(func(e *roster.Entry) { e.Load.LastSeen, e.Vitals = time.Now(), &v })
}

// SetMissedHeartbeats records how many heartbeats in a row the agent has missed.
func (s *Session) SetMissedHeartbeats(heartbeats int) {
	s.note(func(e *roster.Entry) {
		if e.Vitals != nil {
			v := *e.Vitals
			v.Missed = heartbeats
			e.Vitals = &v
		}
	})
}

func (s *Session) note(change func(*roster.Entry)) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.closed {
		h.roster.Change(s.id, change)
	}
}
