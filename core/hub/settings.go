package hub

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// AgentSettings are what an operator sets for an agent. The zero AgentSettings set nothing.
type AgentSettings struct {
	// MaxConcurrent bounds how many tasks the agent runs at once; zero leaves it to the
	// agent. It never exceeds what the agent declared, but applies in full to an agent that
	// declared nothing.
	MaxConcurrent int `json:"max_concurrent,omitempty"`
	// Heartbeat is the interval between the agent's heartbeats, where its dialect has them;
	// zero leaves it to the dialect.
	Heartbeat time.Duration `json:"heartbeat_ns,omitempty"`
	// Changes is how often they were changed, where there are other hubs: of what two hubs know, that
	// with more changes holds.
	Changes uint64 `json:"changes,omitempty"`
}

// SettingsChange tells an agent of its new settings: those in force, how many tasks it now
// runs at once, and why.
type SettingsChange struct {
	AgentSettings
	Concurrent int
	Reason     string
}

// settings holds those of single agents, which outlast their connections, and the defaults
// of dialects.
type settings struct {
	mu       sync.Mutex
	agents   map[core.AgentID]AgentSettings
	dialects map[string]AgentSettings

	store   func(map[core.AgentID]AgentSettings) error // nil keeps nothing
	storing sync.Mutex                                 // locked before mu
	heard   chan struct{}                              // has a token when there are some of other hubs to be stored
}

func newSettings(agents map[core.AgentID]AgentSettings, store func(map[core.AgentID]AgentSettings) error) *settings {
	all := &settings{agents: map[core.AgentID]AgentSettings{}, dialects: map[string]AgentSettings{}, store: store, heard: make(chan struct{}, 1)}
	maps.Copy(all.agents, agents)
	return all
}

// of returns the settings in force for an agent of a dialect.
func (s *settings) of(id core.AgentID, dialect string) AgentSettings {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, all := s.agents[id], s.dialects[dialect]
	return AgentSettings{MaxConcurrent: cmp.Or(own.MaxConcurrent, all.MaxConcurrent), Heartbeat: cmp.Or(own.Heartbeat, all.Heartbeat)}
}

// configure changes those of an agent. Where they are told other hubs, they are kept even if they set
// nothing any more.
func (s *settings) configure(id core.AgentID, c core.Configure, told bool) AgentSettings {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.agents[id]
	if c.MaxConcurrent != nil {
		own.MaxConcurrent = *c.MaxConcurrent
	}
	if c.Heartbeat != nil {
		own.Heartbeat = *c.Heartbeat
	}
	if told {
		own.Changes++
	}
	if s.agents[id] = own; own == (AgentSettings{}) {
		delete(s.agents, id)
	}
	return own
}

// setDialect replaces the defaults of a dialect, and reports whether they differ.
func (s *settings) setDialect(dialect string, all AgentSettings) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.dialects[dialect]
	s.dialects[dialect] = all
	return before != all
}

// save stores those of all agents. The last call stores the latest.
func (s *settings) save() error {
	if s.store == nil {
		return nil
	}
	s.storing.Lock()
	defer s.storing.Unlock()
	return s.store(s.all())
}

// Configure changes the settings of a connected agent, tells it, and returns its new
// status. They hold for whoever has the id, and for the next hub where they are stored. It
// returns a not_authorized Fault unless the principal is an operator, an unknown_agent
// Fault if nobody has the id, an unsupported Fault for a heartbeat interval that the agent's
// dialect does not have, and an internal Fault where the settings are in force but
// could not be stored. For an agent of another hub it waits for that.
func (h *Hub) Configure(ctx context.Context, p core.Principal, c core.Configure) (AgentStatus, error) {
	o, err := h.do(ctx, nil, core.Call{Principal: p, Command: c}, nil)
	if err != nil {
		return AgentStatus{}, err
	}
	return *o.agent, nil
}

// configureMethod asks the hub of an agent to change the settings of the agent.
const configureMethod rpc.Method[core.Configure, *AgentStatus] = "configure"

// configureAnywhere configures an agent of any hub.
func (h *Hub) configureAnywhere(ctx context.Context, p core.Principal, c core.Configure) (*AgentStatus, error) {
	e, ok := h.roster.Find(c.Agent)
	if !ok || e.Hub == "" {
		return h.configure(c)
	}
	c.Agent = e.ID
	a, err := configureMethod.Ask(ctx, h, e.Hub, p, c)
	if err == nil {
		a.Hub = e.Hub
	}
	return a, err
}

func (h *Hub) configure(c core.Configure) (*AgentStatus, error) {
	h.mu.Lock()
	id := h.roster.Resolve(c.Agent)
	s := sessionOf(h.roster.Member(id))
	if s == nil || s.closed {
		h.mu.Unlock()
		return nil, core.NewFault(core.CodeUnknownAgent, "no agent %q is here", id)
	}
	if c.Heartbeat != nil && *c.Heartbeat > 0 && !s.opts.Heartbeats {
		h.mu.Unlock()
		return nil, core.NewFault(core.CodeUnsupported, "agent %s speaks %s, which has no heartbeat interval: leave it out", id, s.identity.Dialect)
	}
	own := h.settings.configure(id, c, h.remote != nil)
	h.applySettings(s, c.Reason)
	settingsNews.TellAll(h, agentSet{Agent: id, Settings: own})
	h.mu.Unlock()
	h.log.Info("the settings of an agent were changed", "agent", id, "max_concurrent", own.MaxConcurrent, "heartbeat", own.Heartbeat.String(), "reason", c.Reason)
	if err := h.settings.save(); err != nil {
		h.log.Error("the settings of agents could not be stored: they end with the hub", "error", err)
		return nil, core.NewFault(core.CodeInternal, "the settings of agent %s are in force, but could not be stored: they end with the hub", id).Because(err)
	}
	e, _ := h.roster.Get(id)
	a := statusOf(e)
	return &a, nil
}

// SetDialectSettings sets the defaults for all agents of a dialect, and tells those that
// are connected.
func (h *Hub) SetDialectSettings(dialect string, all AgentSettings, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.settings.setDialect(dialect, all) {
		return
	}
	for s := range h.sessions {
		if s.id != "" && s.identity.Dialect == dialect {
			h.applySettings(s, reason)
		}
	}
}

// AgentSettings returns the settings in force for the agent that the session is.
func (s *Session) AgentSettings() AgentSettings {
	return s.hub.settings.of(s.AgentID(), s.identity.Dialect)
}
