package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Disconnect says whether the connection of an agent is closed that did not end a
// task in time. The zero Disconnect is unset and means DisconnectSingle.
type Disconnect uint8

// The answers to an agent that did not end a task in time (Fold enhancements,
// section 4, timeout behaviour).
const (
	_                Disconnect = iota
	DisconnectSingle            // one that runs a single task at a time: it is stuck
	DisconnectAlways            // any
	DisconnectNever             // none: its slot is free again, whatever it still does
)

var disconnects = [...]string{"", "single", "always", "never"}

// String returns the name of the answer in a configuration.
func (d Disconnect) String() string { return disconnects[min(int(d), len(disconnects)-1)] }

// UnmarshalText implements encoding.TextUnmarshaler. It returns an invalid Fault for
// a name that is none.
func (d *Disconnect) UnmarshalText(b []byte) error {
	for i, name := range disconnects {
		if i > 0 && name == string(b) {
			*d = Disconnect(i)
			return nil
		}
	}
	return core.NewFault(core.CodeInvalid, "unknown answer %q: send one of %q", b, disconnects[1:])
}

// linger keeps the slot of a task that ended without its agent until the agent
// ends it too, or its time to do so is over. An agent that cannot be told to
// stop has until the deadline of the task.
func (h *Hub) linger(s *Session, j *job) {
	wait := h.limits.SlotGrace
	if j.IsNotice() || !s.worker().Features().Has(core.FeatureCancellation) {
		wait += max(0, time.Until(j.Deadline()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.work[j.ID()]; w != nil && w.timer == nil {
		w.timer = time.AfterFunc(wait, func() { h.overdue(s, j) })
	}
}

// overdue gives up on an agent that never ended a task: its slot is free again, or
// its connection is closed.
func (h *Hub) overdue(s *Session, j *job) {
	s.mu.Lock()
	w, single := s.work[j.ID()], s.card.MaxConcurrent <= 1
	s.mu.Unlock()
	if w == nil {
		return
	}
	h.Count("agent.overdue")
	if on := h.limits.Disconnect; w.slot && (on == DisconnectAlways || on == DisconnectSingle && single) {
		h.log.Warn("agent did not end a task in time: closing its connection", "agent", s.agentID(), "task", j.ID())
		s.Close(core.NewFault(core.CodeTimeout, "task %s was not ended in time", j.ID()))
		return
	}
	h.log.Warn("agent did not end a task in time: its slot is free again", "agent", s.agentID(), "task", j.ID())
	h.release(s, j, time.Now())
}
