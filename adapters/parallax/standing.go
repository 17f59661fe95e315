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

// standing is what an agent says of its own load. Session.mu guards it.
type standing struct {
	said      core.LoadState
	full      bool // it said maxTasks 0
	unhealthy bool // it missed heartbeats
	told      core.LoadState
}

// load is what the hub should make of it.
func (s *standing) load() core.LoadState {
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

// heartbeat answers a heartbeat and takes in how the agent says it is.
func (s *session) heartbeat(ctx context.Context, m wire.Message, p wire.Heartbeat) error {
	s.heard(true)
	now := time.Now()
	s.agent.SetVitals(core.Vitals{At: now, Status: wire.Shorten(p.Status), Active: int(p.ActiveTasks), Metrics: s.metrics(p.Metrics)})
	s.restand(func(st *standing) { s.say(st, p.Status) })
	return s.reply(ctx, wire.TypeHeartbeatAck, m.ID, wire.HeartbeatAck{ServerTime: wire.Timestamp(now), NextHeartbeat: wire.MillisecondsOf(s.interval())})
}

// mostMetrics bounds how many metrics of an agent are kept, and mostMetricBytes their
// names.
const (
	mostMetrics     = 32
	mostMetricBytes = 64
)

// metrics are the numbers of a heartbeat. What is no number is counted and left out.
func (s *session) metrics(raw wire.Members) map[string]float64 {
	if len(raw) == 0 {
		return nil
	}
	kept := make(map[string]float64, min(len(raw), mostMetrics))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		var n *float64
		if len(kept) == mostMetrics || len(name) > mostMetricBytes || json.Unmarshal(raw[name], &n) != nil || n == nil {
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
func (s *session) imposedOn(ctx context.Context, i *hub.Imposed) error {
	s.imposed.Store(int64(i.Heartbeat))
	return s.send(ctx, wire.TypeConfigUpdate, wire.ConfigUpdate{
		Config: wire.UpdatedConfig{HeartbeatInterval: wire.MillisecondsOf(s.interval()), MaxConcurrentTasks: wire.Count(i.Running)},
		Reason: i.Reason,
	})
}

// say takes in the word of a status; one that nobody knows changes nothing.
func (s *session) say(st *standing, status string) {
	if state, known := states[status]; known {
		st.said = state
	} else if status != "" {
		s.hub.Count("parallax.ignored.status")
	}
}

// statusUpdate takes in what changed: status, capabilities and maxTasks, any of
// them. maxTasks 0 stops new tasks until a number comes, or a status that means
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
	s.restand(func(st *standing) {
		s.say(st, p.Status)
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

// restand changes the standing and tells the hub if that makes a difference.
func (s *session) restand(change func(*standing)) {
	s.mu.Lock()
	change(&s.standing)
	load := s.standing.load()
	news := load != s.standing.told
	s.standing.told = load
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
	return link.Because(link.Normal, "the agent disconnected: %s", wire.Or(p.Reason, "no reason given"))
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
		s.restand(func(st *standing) { st.unhealthy = false })
	}
}

// silent acts on silence: after two intervals the agent gets nothing new, after
// three its connection is closed.
func (s *session) silent(missed int) {
	if missed == 2 {
		s.hub.Count("parallax.unhealthy")
		s.agent.Missed(missed)
		s.restand(func(st *standing) { st.unhealthy = true })
		return
	}
	text := "no heartbeat for 3 intervals of " + s.enforced().String()
	s.hub.Count("parallax.error." + wire.CodeHeartbeatMissed)
	s.link.Close(link.Reason{Cause: link.Unresponsive, Text: text, Code: closeUnhealthy})
}
