package hub

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// averagedTasks is about how many of its latest tasks an agent's average is over.
const averagedTasks = 4

// noteTaskTime adds a task that is done to the average of its agent. It leaves out a
// delegated task without a report: that may have ended for the hub before the agent was
// done.
func (h *Hub) noteTaskTime(agent core.AgentID, log *task.Log) {
	if o, ok := log.At(0).Body.(core.Opened); ok && o.Request.Intent == core.IntentDelegate && !o.Request.ReportBack {
		return
	}
	for e := range log.Backward() {
		if e.Body.Kind() != core.KindAssigned {
			continue
		}
		took := max(1, log.Last().At.Sub(e.At))
		h.roster.Change(agent, func(e *roster.Entry) {
			if e.TaskTime == 0 {
				e.TaskTime = took
				return
			}
			e.TaskTime += (took - e.TaskTime) / averagedTasks
		})
		return
	}
}

// Estimate returns about how long a task will take, from the average of its agent and the
// queue ahead of it. It returns zero when the agent has done no task since it joined, and
// when the task has no agent or has ended.
func (h *Hub) Estimate(id core.TaskID) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := h.jobs[id]
	if j == nil {
		return h.estimateElsewhere(id)
	}
	s := j.waiting
	if s == nil {
		w, assigned := j.Worker().(*peer)
		if !assigned {
			return 0
		}
		s = (*Session)(w)
	}
	e, _ := h.roster.Get(s.id)
	return estimate(&e, slices.Index(s.queue, j))
}

// estimateElsewhere estimates a task of another hub as if it came last of those that wait for its
// agent. Callers hold mu.
func (h *Hub) estimateElsewhere(id core.TaskID) time.Duration {
	t := h.tasks.Get(id)
	if t == nil || t.HasEnded() {
		return 0
	}
	agent, waiting := t.Agent(), -1
	if agent == "" {
		agent = t.To().Agent()
	}
	e, ok := h.roster.Find(agent)
	if !ok || e.Hub == "" {
		return 0
	}
	if t.Agent() == "" {
		waiting = max(0, e.Load.Queued-1)
	}
	return estimate(&e, waiting)
}

// estimate returns about how long a task will take at an agent that works on it, or in whose queue
// it waits at a place; -1 if it works on it.
func estimate(e *roster.Entry, place int) time.Duration {
	rounds := 1
	if place >= 0 {
		rounds += 1 + place/e.Capacity()
	}
	return time.Duration(rounds) * e.TaskTime
}
