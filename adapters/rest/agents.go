package rest

import (
	"math"
	"net/http"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// maxAgents is the maximum number of agents on a page.
const maxAgents = 1000

// getAgents lists the connected agents; without a limit as many as fit on a page of
// hub.PageBytes, which are all of most hubs, for clients that do not use pages.
func (a *api) getAgents(c call) error {
	after := core.AgentID(c.r.URL.Query().Get("after"))
	limit, err := number(c.r, "limit", math.MaxInt, maxAgents)
	if err == nil && after != "" {
		err = core.CheckAgentID(after)
	}
	if err != nil {
		return err
	}
	page, more := a.hub.AgentPage(c.from, after, limit, func(core.Card) bool { return true })
	out := struct {
		Agents []hub.AgentStatus `json:"agents"`
		After  core.AgentID      `json:"after,omitempty"`
	}{Agents: page}
	if more > 0 {
		out.After = page[len(page)-1].ID
	}
	return a.reply(c.w, http.StatusOK, out)
}

// getAgent returns the agent that an address with the id reaches: also one that is not listed before it is asked.
func (a *api) getAgent(c call) error {
	id := core.AgentID(c.id())
	if status, ok := a.hub.Reach(c.from, id); ok {
		return a.reply(c.w, http.StatusOK, status)
	}
	var near []string
	for _, n := range a.hub.Nearest(c.from, id) {
		near = append(near, string(n))
	}
	if len(near) == 0 {
		return core.NewFault(core.CodeUnknownAgent, "no agent %q is here", id)
	}
	return core.NewFault(core.CodeUnknownAgent, "no agent %q is here; the nearest: %s", id, strings.Join(near, ", "))
}
