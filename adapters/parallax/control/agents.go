package control

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// agentView is an agent, with the members that Parallax has for one in its documentation
// and those that it has in its code.
type agentView struct {
	ID            core.AgentID               `json:"id"`
	Name          string                     `json:"name"`
	Endpoint      string                     `json:"endpoint"`
	Capabilities  []string                   `json:"capabilities"`
	Status        string                     `json:"status"`
	Region        json.RawMessage            `json:"region,omitempty"`
	Metadata      map[string]json.RawMessage `json:"metadata"`
	ConnectedAt   time.Time                  `json:"connectedAt"`
	LastSeen      time.Time                  `json:"lastSeen"`
	LastHeartbeat *time.Time                 `json:"lastHeartbeat,omitempty"`
	Source        string                     `json:"source"`
}

// connected is the status of every agent: the hub knows only those that are connected.
const connected = "connected"

func viewOf(a hub.AgentStatus) agentView {
	v := agentView{
		ID: a.ID, Name: a.Name, Endpoint: a.Dialect + "://" + string(a.ID), Capabilities: a.Capabilities, Status: connected,
		Region: a.Metadata["region"], Metadata: a.Metadata, ConnectedAt: a.Since, LastSeen: a.Load.LastSeen, Source: "registry",
	}
	if v.Capabilities == nil {
		v.Capabilities = []string{}
	}
	if v.Metadata == nil {
		v.Metadata = map[string]json.RawMessage{}
	}
	if a.Vitals != nil {
		v.LastHeartbeat = &a.Vitals.At
	}
	return v
}

// maxByCapability bounds the cards under byCapability, where an agent stands once for each of its
// capabilities.
const maxByCapability = hub.PageBytes

// getAgents lists the agents. It has the filters of the documentation, which the original
// ignores: status, capabilities (all of them) and region. An addition to the original is after:
// an answer has cards of at most hub.PageBytes, and next is what to send as after for the others.
// Where byCapability would be too large, it lacks the last agents.
func (c *Control) getAgents(r request) error {
	q := r.r.URL.Query()
	wanted := slices.Concat(splitList(q["capability"]), splitList(q["capabilities"]))
	page, more := c.hub.AgentPage(r.from, core.AgentID(q.Get("after")), math.MaxInt, func(card core.Card) bool {
		region, _ := wire.Unquoted(card.Metadata["region"])
		switch status := q.Get("status"); {
		case status != "" && status != connected && status != "active",
			q.Get("region") != "" && q.Get("region") != region:
			return false
		}
		return !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(card.Capabilities, w) })
	})
	views, by, room, next := []agentView{}, map[string][]agentView{}, maxByCapability, core.AgentID("")
	for _, a := range page {
		v := viewOf(a)
		views = append(views, v)
		if room -= len(v.Capabilities) * a.Size(); room < 0 {
			continue
		}
		for _, capability := range v.Capabilities {
			by[capability] = append(by[capability], v)
		}
	}
	total := len(views) + more
	if more > 0 {
		next = page[len(page)-1].ID
	}
	c.writeJSON(r.w, http.StatusOK, struct {
		Agents       []agentView            `json:"agents"`
		Count        int                    `json:"count"`
		Total        int                    `json:"total"`
		Connected    int                    `json:"connected"`
		Disconnected int                    `json:"disconnected"`
		ByCapability map[string][]agentView `json:"byCapability"`
		Timestamp    time.Time              `json:"timestamp"`
		Next         core.AgentID           `json:"next,omitempty"`
	}{views, len(views), total, total, 0, by, time.Now().UTC(), next})
	return nil
}

func (c *Control) getAgent(r request) error {
	a, here := c.hub.Agent(r.from, core.AgentID(r.id()))
	if !here {
		return core.NewFault(core.CodeUnknownAgent, "Agent not found")
	}
	c.writeJSON(r.w, http.StatusOK, viewOf(a))
	return nil
}
