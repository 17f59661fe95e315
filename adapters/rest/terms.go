package rest

import (
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// termsBody is the body of PATCH /v1/agents/{id}. Absent values stay as they are; 0 restores
// the agent's own.
type termsBody struct {
	MaxConcurrent       *int   `json:"max_concurrent"`
	HeartbeatIntervalMS *int64 `json:"heartbeat_interval_ms"`
	Reason              string `json:"reason"`
}

// Bounds of the values.
const (
	maxConcurrent = 1 << 20
	minHeartbeat  = 100 * time.Millisecond
	maxHeartbeat  = 24 * time.Hour
)

// patchAgent changes the settings of an agent.
func (a *api) patchAgent(c call) error {
	var body termsBody
	if err := a.read(c, &body); err != nil {
		return err
	}
	if body.MaxConcurrent == nil && body.HeartbeatIntervalMS == nil {
		return core.NewFault(core.CodeInvalid, "there is nothing to set: send max_concurrent, heartbeat_interval_ms or both")
	}
	if n := body.MaxConcurrent; n != nil && (*n < 0 || *n > maxConcurrent) {
		return core.NewFault(core.CodeInvalid, "max_concurrent: want 0 to %d, or 0 for the agent's own", maxConcurrent)
	}
	set := core.Configure{Agent: core.AgentID(c.id()), MaxConcurrent: body.MaxConcurrent, Reason: body.Reason}
	if ms := body.HeartbeatIntervalMS; ms != nil {
		if *ms != 0 && (*ms < minHeartbeat.Milliseconds() || *ms > maxHeartbeat.Milliseconds()) {
			return core.NewFault(core.CodeInvalid, "heartbeat_interval_ms: want %d to %d, or 0 for the configured interval", minHeartbeat.Milliseconds(), maxHeartbeat.Milliseconds())
		}
		interval := time.Duration(*ms) * time.Millisecond
		set.Heartbeat = &interval
	}
	status, err := a.hub.Configure(c.r.Context(), c.from, set)
	if err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, status)
}

// postRestart starts an agent or a pack of the settings again.
func (a *api) postRestart(c call) error {
	name := c.id()
	if err := a.hub.Restart(c.r.Context(), c.from, name); err != nil {
		return err
	}
	return a.reply(c.w, http.StatusAccepted, map[string]string{"id": name})
}
