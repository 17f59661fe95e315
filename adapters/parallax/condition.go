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

// condition is what is known of an agent's load. session.mu guards it.
type condition struct {
	said      core.LoadState
	full      bool           // it said maxTasks 0
	unhealthy bool           // it missed heartbeats
	sent      core.LoadState // what the hub was told last
}

// load is the load that the hub should assume.
func (s *condition) load() core.LoadState {
	switch {
	case s.said == core.LoadDraining:
		return core.LoadDraining
	case s.full || s.unhealthy:
		return core.LoadOverloaded
	}
	return max(s.said, core.LoadIdle)
}

// states are what the words of status mean. The page shows healthy and busy; the
// rest is what agents of the project say elsewhere.
var states = map[string]core.LoadState{
	"healthy": core.LoadIdle, "idle": core.LoadIdle, "ready": core.LoadIdle, "available": core.LoadIdle, "active": core.LoadIdle,
	"busy": core.LoadBusy, "degraded": core.LoadBusy,
	"overloaded": core.LoadOverloaded, "unhealthy": core.LoadOverloaded,
	"draining": core.LoadDraining, "stopping": core.LoadDraining,
}

// heartbeat answers a heartbeat and notes what the agent says of itself.
func (s *session) heartbeat(ctx context.Context, m wire.Message, p wire.Heartbeat) error {
	s.heard(true)
	now := time.Now()
	s.agent.SetVitals(core.Vitals{At: now, Status: wire.Shorten(p.Status), Active: int(p.ActiveTasks), Metrics: s.metrics(p.Metrics)})
	s.changeCondition(func(st *condition) { s.noteStatus(st, p.Status) })
	return s.reply(ctx, wire.TypeHeartbeatAck, m.ID, wire.HeartbeatAck{ServerTime: wire.Timestamp(now), NextHeartbeat: wire.MillisecondsOf(s.interval())})
}

// maxMetrics bounds how many metrics of an agent are kept, and maxMetricBytes their
// names.
const (
	maxMetrics     = 32
	maxMetricBytes = 64
)

// metrics are the numbers of a heartbeat. What is no number is counted and left out.
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

// interval is how often the agent is to send a heartbeat: as an operator says, else
// as it chose itself, else as the settings do.
func (s *session) interval() time.Duration {
	return cmp.Or(time.Duration(s.imposed.Load()), s.declared, s.opts.HeartbeatInterval)
}

// enforced is the interval by which silence is judged. Agents that ignore config_update
// are to survive it, so that a shorter one than registered told is asked for alone.
func (s *session) enforced() time.Duration {
	return max(time.Duration(s.told.Load()), s.interval())
}

// imposedOn tells the agent what an operator has set.
func (s *session) imposedOn(ctx context.Context, i *hub.SettingsChange) error {
	s.imposed.Store(int64(i.Heartbeat))
	return s.send(ctx, wire.TypeConfigUpdate, wire.ConfigUpdate{
		Config: wire.UpdatedConfig{HeartbeatInterval: wire.MillisecondsOf(s.interval()), MaxConcurrentTasks: wire.Count(i.Concurrent)},
		Reason: i.Reason,
	})
}

// noteStatus notes a status; an unknown one changes nothing.
func (s *session) noteStatus(st *condition, status string) {
	if state, known := states[status]; known {
		st.said = state
	} else if status != "" {
		s.hub.Count("parallax.ignored.status")
	}
}

// statusUpdate notes what changed: any of status, capabilities and maxTasks. maxTasks 0 stops new tasks until a number comes, or a status that means
// ready without one.
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
	s.changeCondition(func(st *condition) {
		s.noteStatus(st, p.Status)
		switch {
		case p.MaxTasks != nil:
			st.full = *p.MaxTasks <= 0
		case states[p.Status] == core.LoadIdle:
			st.full = false
		}
	})
	s.log.Debug("agent changed", "agent", s.id, "status", p.Status, "capabilities", p.Capabilities, "reason", p.Reason)
	return nil
}

// changeCondition changes the condition and tells the hub if the load is another.
func (s *session) changeCondition(change func(*condition)) {
	s.mu.Lock()
	change(&s.condition)
	load := s.condition.load()
	news := load != s.condition.sent
	s.condition.sent = load
	s.mu.Unlock()
	if news {
		s.agent.SetLoad(load)
	}
}

// takesNotices reports whether the agent wants them now.
func (s *session) takesNotices() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.card.Capabilities, wire.CapabilityNotify)
}

// disconnect ends the connection as the agent announced.
func (s *session) disconnect(_ context.Context, _ wire.Message, p wire.Disconnect) error {
	return link.Because(link.Normal, "the agent disconnected: %s", cmp.Or(p.Reason, "no reason given"))
}

// heard notes a sign of life. Silence counts from the first heartbeat on: an
// agent that never sends one is judged by the ping of its transport alone.
func (s *session) heard(beat bool) {
	if s.agent == nil {
		return
	}
	const often = time.Second // an answer may come in a hundred thousand pieces
	if now := time.Now(); !beat && now.Sub(s.seen) >= often {
		s.seen = now
		s.agent.Seen()
	}
	if s.silence.heard(beat, s.enforced(), s.silent) {
		s.changeCondition(func(st *condition) { st.unhealthy = false })
	}
}

// silent acts on silence: after two intervals the agent gets nothing new, after
// three its connection is closed.
func (s *session) silent(missed int) {
	if missed == 2 {
		s.hub.Count("parallax.unhealthy")
		s.agent.Missed(missed)
		s.changeCondition(func(st *condition) { st.unhealthy = true })
		return
	}
	text := "no heartbeat for 3 intervals of " + s.enforced().String()
	s.hub.Count("parallax.error." + wire.CodeHeartbeatMissed)
	s.link.Close(link.Reason{Cause: link.Unresponsive, Text: text, Code: closeUnhealthy})
}
