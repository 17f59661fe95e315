package hub

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// paceWeight is how many of its latest tasks tell, about, how fast an agent is.
const paceWeight = 4

// notePace takes note of how long an agent took for a task that is done. One of which
// no report is wanted may have ended for the hub before its agent was done. Callers
// hold mu.
func (h *Hub) notePace(agent core.AgentID, log *task.Log) {
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
			e.TaskTime += (took - e.TaskTime) / paceWeight
		})
		return
	}
}

// Estimate returns about how long a task takes from where it stands, by how long its
// agent took for its latest tasks and by what waits before it. It is zero when the agent
// has done none since it is here, and when the task has no agent or has ended.
func (h *Hub) Estimate(id core.TaskID) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := h.jobs[id]
	if j == nil {
		return 0
	}
	s := j.waiting
	if s == nil {
		w, works := j.Worker().(*worker)
		if !works {
			return 0
		}
		s = (*Session)(w)
	}
	e, _ := h.roster.Get(s.id)
	turns := 1
	if i := slices.Index(s.queue, j); i >= 0 {
		turns += 1 + i/e.Capacity()
	}
	return time.Duration(turns) * e.TaskTime
}
