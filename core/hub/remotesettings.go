package hub

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// The settings of an agent are those of all hubs, for it may come to any of them: the hub where it is
// tells the others of each change, and a hub that comes up is told all.

// agentSet is what an operator has set for an agent.
type agentSet struct {
	Agent    core.AgentID  `json:"agent"`
	Settings AgentSettings `json:"settings"`
}

const (
	// settingsNews tells hubs of the settings of an agent. A hub that has missed some wants all again.
	settingsNews rpc.News[agentSet] = "settings"
	// settingsWanted has a hub tell the settings of all agents.
	settingsWanted rpc.News[struct{}] = "settings.wanted"
)

func (h *Hub) hearSettings() {
	settingsNews.Hear(h, h.takeSettings, func(from string) { settingsWanted.TellEach(h, []string{from}, struct{}{}) })
	settingsWanted.Hear(h, func(from string, _ struct{}) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.tellSettings(from)
	}, nil)
}

// tellSettings tells a hub the settings of all agents. Callers hold mu.
func (h *Hub) tellSettings(hub string) {
	all := h.settings.all()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		settingsNews.TellEach(h, []string{hub}, agentSet{id, all[id]})
	}
}

// takeSettings takes settings of another hub, if they are newer than those of this one.
func (h *Hub) takeSettings(from string, a agentSet) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.settings.hear(a) {
		return
	}
	if s := sessionOf(h.roster.Member(a.Agent)); s != nil && !s.closed { // it came here meanwhile
		h.applySettings(s, "they were set at hub "+from)
	}
	select {
	case h.settings.heard <- struct{}{}:
	default: // they are stored with others
	}
}

// storeSettings stores settings of other hubs, until ctx ends.
func (h *Hub) storeSettings(ctx context.Context) {
	for {
		select {
		case <-h.settings.heard:
		case <-ctx.Done():
			return
		}
		if err := h.settings.save(); err != nil {
			h.log.Error("the settings of agents that were set at another hub could not be stored: they end with this hub", "error", err)
		}
	}
}

// all returns those of all agents.
func (s *settings) all() map[core.AgentID]AgentSettings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.agents)
}

// hear reports whether settings are newer than those that it has, and takes them then. Of two with as
// many changes, which hubs made that did not hear each other, all take the same.
func (s *settings) hear(a agentSet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, other := s.agents[a.Agent], a.Settings
	if cmp.Or(cmp.Compare(own.Changes, other.Changes), cmp.Compare(own.MaxConcurrent, other.MaxConcurrent), cmp.Compare(own.Heartbeat, other.Heartbeat)) >= 0 {
		return false
	}
	s.agents[a.Agent] = other
	return true
}
