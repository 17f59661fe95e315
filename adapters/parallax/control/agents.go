package control

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// agentView is an agent, with the members of both forms in which Parallax shows one:
// that of its documentation and that of its code.
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

// connected is the status of all who are here: the hub knows nobody else.
const connected = "connected"

func viewOf(a hub.AgentStatus) agentView {
	v := agentView{
		ID: a.ID, Name: a.Name, Endpoint: a.Dialect + "://" + string(a.ID), Capabilities: a.Capabilities, Status: connected,
		Metadata: map[string]json.RawMessage{}, ConnectedAt: a.Since, LastSeen: a.Load.LastSeen, Source: "registry",
	}
	if v.Capabilities == nil {
		v.Capabilities = []string{}
	}
	for name, value := range a.Metadata {
		v.Metadata[name] = value
	}
	v.Region = v.Metadata["region"]
	if a.Vitals != nil {
		v.LastHeartbeat = &a.Vitals.At
	}
	return v
}

// getAgents lists who is here. Unlike the original, it honours the filters that the
// documentation has: status, capabilities (all of them) and region.
func (c *Control) getAgents(k call) error {
	q := k.r.URL.Query()
	wanted := slices.Concat(words(q["capability"]), words(q["capabilities"]))
	views, by := []agentView{}, map[string][]agentView{}
	for _, a := range c.hub.Agents() {
		v := viewOf(a)
		region, _ := json.Marshal(q.Get("region")) // a text always encodes
		switch status := q.Get("status"); {
		case status != "" && status != connected && status != "active":
			continue
		case q.Get("region") != "" && string(v.Region) != string(region):
			continue
		case slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(v.Capabilities, w) }):
			continue
		}
		views = append(views, v)
		for _, able := range v.Capabilities {
			by[able] = append(by[able], v)
		}
	}
	c.answer(k.w, http.StatusOK, struct {
		Agents       []agentView            `json:"agents"`
		Count        int                    `json:"count"`
		Total        int                    `json:"total"`
		Connected    int                    `json:"connected"`
		Disconnected int                    `json:"disconnected"`
		ByCapability map[string][]agentView `json:"byCapability"`
		Timestamp    time.Time              `json:"timestamp"`
	}{views, len(views), len(views), len(views), 0, by, time.Now().UTC()})
	return nil
}

func (c *Control) getAgent(k call) error {
	a, here := c.hub.Agent(core.AgentID(k.id()))
	if !here {
		return core.NewFault(core.CodeUnknownAgent, "Agent not found")
	}
	c.answer(k.w, http.StatusOK, viewOf(a))
	return nil
}
