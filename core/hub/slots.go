package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// release removes a task from its agent, which ended it at the given time or failed to in
// time, and assigns the next one.
func (h *Hub) release(s *Session, j *job, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	w := s.work[j.ID()]
	if w == nil {
		s.mu.Unlock()
		return
	}
	delete(s.work, j.ID())
	s.last, s.until = cause{task: j.ID(), chain: policy.Chain{Hops: j.Hops()}, over: true}, now.Add(h.limits.CauseMemory)
	s.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	if !s.closed {
		s.tellHops()
	}
	if w.slot && !s.closed { // another session may have its id by now
		h.roster.Finish(s.id)
		h.dispatch(s)
	}
}

// linger keeps the slot of a task that ended without its agent until the agent ends it too,
// or the grace is over. An agent that cannot be told to stop has until the deadline of the
// task: see [Hub.patienceWith].
func (h *Hub) linger(s *Session, j *job) {
	wait := h.limits.SlotGrace
	if j.IsNotice() || !s.peer().Features().Has(core.FeatureCancellation) {
		wait += h.patienceWith(j.Task)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.work[j.ID()]; w != nil && w.timer == nil {
		h.allow(s, j, w, wait, time.Now())
	}
}

// aliveGraces is how many times the grace an agent has that says that it is alive, if the deadline of the task is
// sooner.
const aliveGraces = 12

// allow gives an agent some time to end a task, for which the hub has waited since it began to. Callers hold
// Session.mu.
func (h *Hub) allow(s *Session, j *job, w *holding, wait time.Duration, began time.Time) {
	since := time.Now()
	w.timer = time.AfterFunc(wait, func() { h.overdue(s, j, since, began) })
}

// overdue frees the slot of a task that its agent has not ended since the hub began to wait for that. One that
// would be disconnected stays as long as it says something, until the deadline of the task and for aliveGraces.
func (h *Hub) overdue(s *Session, j *job, since, began time.Time) {
	h.mu.Lock()
	e, _ := h.roster.Get(s.id)
	h.mu.Unlock()
	s.mu.Lock()
	w, single := s.work[j.ID()], s.card.Load().MaxConcurrent <= 1
	closes := w != nil && w.slot && (h.limits.Disconnect == DisconnectAlways || h.limits.Disconnect == DisconnectSingle && single)
	left := max(time.Until(j.Deadline()), time.Until(began.Add(aliveGraces*h.limits.SlotGrace)))
	if closes && left > 0 && sessionOf(e.Member) == s && e.Load.LastSeen.After(since) {
		h.allow(s, j, w, min(h.limits.SlotGrace, left), began)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if w == nil {
		return
	}
	h.Count("agent.overdue")
	if closes {
		h.log.Warn("agent did not end a task in time: closing its connection", "agent", s.AgentID(), "task", j.ID())
		s.Close(core.NewFault(core.CodeTimeout, "task %s was not ended in time", j.ID()))
		return
	}
	h.log.Warn("agent did not end a task in time: its slot is free again", "agent", s.AgentID(), "task", j.ID())
	h.release(s, j, time.Now())
}
