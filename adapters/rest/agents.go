package rest

import (
	"net/http"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func (a *api) getAgents(c call) error {
	return a.reply(c.w, http.StatusOK, struct {
		Agents []hub.AgentStatus `json:"agents"`
	}{a.hub.Agents()})
}

func (a *api) getAgent(c call) error {
	id := core.AgentID(c.id())
	if status, ok := a.hub.Agent(id); ok {
		return a.reply(c.w, http.StatusOK, status)
	}
	var near []string
	for _, n := range a.hub.Nearest(id) {
		near = append(near, string(n))
	}
	if len(near) == 0 {
		return core.NewFault(core.CodeUnknownAgent, "no agent %q is here", id)
	}
	return core.NewFault(core.CodeUnknownAgent, "no agent %q is here; the nearest: %s", id, strings.Join(near, ", "))
}
