package parallax

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// status is the load of an agent as far as the hub knows. session.mu guards it.
type status struct {
	declared  core.LoadState
	full      bool           // it sent maxTasks 0
	silent    bool           // it missed heartbeats
	published core.LoadState // the hub got this last
}

// load returns the load to publish.
func (s *status) load() core.LoadState {
	switch {
	case s.declared == core.LoadDraining:
		return core.LoadDraining
	case s.full || s.silent:
		return core.LoadOverloaded
	}
	return max(s.declared, core.LoadIdle)
}

// loadStates maps the values of status. The page has healthy and busy; agents of the
// project send the others elsewhere.
var loadStates = map[string]core.LoadState{
	"healthy": core.LoadIdle, "idle": core.LoadIdle, "ready": core.LoadIdle, "available": core.LoadIdle, "active": core.LoadIdle,
	"busy": core.LoadBusy, "degraded": core.LoadBusy,
	"overloaded": core.LoadOverloaded, "unhealthy": core.LoadOverloaded,
	"draining": core.LoadDraining, "stopping": core.LoadDraining,
}

// heartbeat publishes the agent's status and metrics, and acknowledges the heartbeat.
func (s *session) heartbeat(ctx context.Context, m wire.Message, p wire.Heartbeat) error {
	s.noteAlive(true)
	now := time.Now()
	s.agent.SetVitals(core.Vitals{At: now, Status: wire.Shorten(p.Status), Active: int(p.ActiveTasks), Metrics: s.metrics(p.Metrics)})
	s.updateStatus(func(st *status) { s.declare(st, p.Status) })
	return s.send(ctx, wire.TypeHeartbeatAck, m.ID, wire.HeartbeatAck{ServerTime: wire.Timestamp(now), NextHeartbeat: wire.MillisecondsOf(s.heartbeatInterval())})
}

// The bounds of an agent's metrics: their number, and the length of a name.
const (
	maxMetrics     = 32
	maxMetricBytes = 64
)

// metrics returns the numbers of a heartbeat. It counts what it leaves out.
func (s *session) metrics(raw wire.Members) map[string]float64 {
	if len(raw) == 0 {
		return nil
	}
	kept := make(map[string]float64, min(len(raw), maxMetrics))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		var n *float64
		if len(kept) == maxMetrics || len(name) > maxMetricBytes || json.Unmarshal(raw[name], &n) != nil || n == nil {
			s.hub.Count("parallax.ignored.metric")
			continue
		}
		kept[name] = *n
	}
	return kept
}

// heartbeatInterval returns the interval of an operator, else of the agent, else of the
// settings.
func (s *session) heartbeatInterval() time.Duration {
	return cmp.Or(time.Duration(s.operatorInterval.Load()), s.interval, s.opts.HeartbeatInterval)
}

// enforcedInterval returns the interval of the watchdog. Agents may ignore config_update,
// so it is never shorter than that of the message registered.
func (s *session) enforcedInterval() time.Duration {
	return max(time.Duration(s.registeredInterval.Load()), s.heartbeatInterval())
}

// updateConfig sends the agent what an operator has set.
func (s *session) updateConfig(ctx context.Context, c *hub.SettingsChange) error {
	s.operatorInterval.Store(int64(c.Heartbeat))
	return s.send(ctx, wire.TypeConfigUpdate, "", wire.ConfigUpdate{
		Config: wire.UpdatedConfig{HeartbeatInterval: wire.MillisecondsOf(s.heartbeatInterval()), MaxConcurrentTasks: wire.Count(c.Concurrent)},
		Reason: c.Reason,
	})
}

// declare sets the load that the agent sent. An unknown value changes nothing.
func (s *session) declare(st *status, value string) {
	if load, known := loadStates[value]; known {
		st.declared = load
	} else if value != "" {
		s.hub.Count("parallax.ignored.status")
	}
}

// statusUpdate applies status, capabilities and maxTasks, of which any may be absent.
// After maxTasks 0 the agent gets no task until it sends another number, or a status of
// an idle agent without one.
func (s *session) statusUpdate(ctx context.Context, m wire.Message, p wire.StatusUpdate) error {
	s.mu.Lock()
	card, changed := s.card, false
	if p.Capabilities != nil {
		card.Capabilities, changed = p.Capabilities, true
		card.Features = features(s.extensions, card.Capabilities)
	}
	if p.MaxTasks != nil && *p.MaxTasks > 0 {
		card.MaxConcurrent, changed = int(min(*p.MaxTasks, 1<<20)), true
	}
	s.card = card
	s.mu.Unlock()
	if changed {
		if err := s.agent.Update(card); err != nil {
			return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, core.AsFault(err).Message)
		}
	}
	s.updateStatus(func(st *status) {
		s.declare(st, p.Status)
		switch {
		case p.MaxTasks != nil:
			st.full = *p.MaxTasks <= 0
		case loadStates[p.Status] == core.LoadIdle:
			st.full = false
		}
	})
	s.log.Debug("agent changed", "agent", s.id, "status", p.Status, "capabilities", p.Capabilities, "reason", p.Reason)
	return nil
}

// updateStatus changes the status, and publishes the load if that is another now.
func (s *session) updateStatus(change func(*status)) {
	s.mu.Lock()
	change(&s.status)
	load := s.status.load()
	changed := load != s.status.published
	s.status.published = load
	s.mu.Unlock()
	if changed {
		s.agent.SetLoad(load)
	}
}

// takesNotices reports whether the agent has the capability notify now.
func (s *session) takesNotices() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.card.Capabilities, wire.CapabilityNotify)
}

// disconnect ends the connection.
func (s *session) disconnect(_ context.Context, _ wire.Message, p wire.Disconnect) error {
	return link.Because(link.Normal, "the agent disconnected: %s", cmp.Or(p.Reason, "no reason given"))
}

// noteAlive records a message of the agent. Until the first heartbeat, only the ping of
// the transport detects a dead agent.
func (s *session) noteAlive(heartbeat bool) {
	if s.agent == nil {
		return
	}
	const interval = time.Second // an answer may have a hundred thousand chunks
	if now := time.Now(); !heartbeat && now.Sub(s.lastSeen) >= interval {
		s.lastSeen = now
		s.agent.Seen()
	}
	if s.watchdog.reset(heartbeat, s.enforcedInterval(), s.missedHeartbeats) {
		s.updateStatus(func(st *status) { st.silent = false })
	}
}

// missedHeartbeats gives the agent nothing new after two intervals, and closes the
// connection after three.
func (s *session) missedHeartbeats(missed int) {
	if missed == 2 {
		s.hub.Count("parallax.unhealthy")
		s.agent.SetMissedHeartbeats(missed)
		s.updateStatus(func(st *status) { st.silent = true })
		return
	}
	text := "no heartbeat for 3 intervals of " + s.enforcedInterval().String()
	s.hub.Count("parallax.error." + wire.CodeHeartbeatMissed)
	s.link.Close(link.Reason{Cause: link.Unresponsive, Text: text, Code: closeUnhealthy})
}
