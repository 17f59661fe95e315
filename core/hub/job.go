package hub

import (
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// job is a task on its way through the hub, until it has ended.
type job struct {
	*task.Task
	opener *Session // maybe a child session

	// Guarded by Hub.mu.
	waiting *Session // in whose queue it stands; nil if it stands in none
	tried   []attempt
	first   holding // of the first agent: most tasks have one
}

// attempt is a try at a task that failed: by whom the task is not tried again. An agent
// that failed is not given it any more; of one whose connection was lost that
// connection is not, and the next one counts as another agent.
type attempt struct {
	agent core.AgentID
	sess  *Session
}

// holding is a task that an agent has, or had and not ended yet.
type holding struct {
	job   *job
	slot  bool
	timer *time.Timer // frees the slot of a task that ended without its agent
}

// Report takes in what the agent of the session says of a task. It returns a
// not_authorized Fault when the session does not have the task, a conflict Fault
// when the task has ended already, an invalid Fault for a kind that agents do not
// say, and a too_large Fault when the task has said more than it may, which ends it.
// What comes late is counted and not delivered; the usage of an agent that still
// works on the task is counted nevertheless.
func (s *Session) Report(id core.TaskID, body core.Body, foreign *core.Foreign) error {
	s.mu.Lock()
	w := s.work[id]
	s.mu.Unlock()
	if w == nil {
		return s.hub.notHeld(s, id)
	}
	checked := s.identity.Checked
	if !checked {
		if err := checkForeign(foreign); err != nil {
			return err
		}
	}
	switch b := body.(type) {
	case core.Failed:
		if b.Fault == nil {
			b.Fault = core.NewFault(core.CodeInternal, "the agent failed without saying why")
		}
		again, err := s.hub.attemptFailed(w.job, s, attempt{agent: s.agentID()}, b, foreign)
		if again && s.hub.route(w.job) != nil {
			w.job.End(b)
		}
		return err
	case core.Done:
		if !checked && len(b.Data) > 0 && !json.Valid(b.Data) {
			return core.NewFault(core.CodeInvalid, "the data of the answer is not JSON")
		}
		return s.conclude(w.job, body, foreign)
	case core.Cancelled:
		return s.conclude(w.job, body, foreign)
	}
	return w.job.Report(s.worker(), body, foreign)
}

// notHeld returns why a session that does not have the task may not report on it:
// its agent has ended the task, or never had it.
func (h *Hub) notHeld(s *Session, id core.TaskID) error {
	agent := s.agentID()
	if t := h.tasks.Get(id); t != nil && sessionOf(h.roster.Member(agent)) == s && t.Agent() == agent && t.HasEnded() {
		h.Count("report.late")
		return core.NewFault(core.CodeConflict, "task %s has ended", id)
	}
	h.Count("report.not_held")
	return core.NewFault(core.CodeNotAuthorized, "this connection does not have task %s", id)
}

// conclude takes in the end that an agent gave a task.
func (s *Session) conclude(j *job, body core.Body, foreign *core.Foreign) error {
	now := time.Now()
	err := j.Conclude(s.worker(), now, body, foreign)
	s.hub.release(s, j, now)
	if err == nil {
		s.hub.ended(j)
	}
	return err
}

// attemptFailed ends a task, or takes it from its agent and reports that it is to go to
// another, where the request leaves that open and nothing has been said yet.
func (h *Hub) attemptFailed(j *job, s *Session, by attempt, failed core.Failed, foreign *core.Foreign) (again bool, err error) {
	again, err = j.Fail(s.worker(), failed, foreign)
	if again {
		h.mu.Lock()
		j.tried = append(j.tried, by)
		h.mu.Unlock()
	}
	h.release(s, j, time.Now())
	if err == nil && !again {
		h.ended(j)
	}
	return again, err
}

// Delivered notes that the agent's transport took the assignment of a task: the
// receipt says so (promise P4), and a notice is done.
func (s *Session) Delivered(id core.TaskID) {
	s.mu.Lock()
	w := s.work[id]
	s.mu.Unlock()
	if w == nil {
		return
	}
	w.job.Delivered(s.worker())
	if w.job.IsNotice() {
		w.job.End(core.Done{})
		if !w.slot {
			s.hub.release(s, w.job, time.Now())
		}
	}
}

// ended does what follows the end of a task: the queue it stood in, and what is kept
// in memory.
func (h *Hub) ended(j *job) {
	j.opener.mu.Lock()
	delete(j.opener.opened, j.Task)
	j.opener.mu.Unlock()
	log := j.Log()
	h.mu.Lock()
	if from := j.waiting; from != nil {
		j.waiting = nil
		h.unqueue(from, j)
	}
	if log.Last().Body.Kind() == core.KindDone && !j.IsNotice() {
		h.noteTaskTime(j.Agent(), &log)
	}
	delete(h.jobs, j.ID())
	if len(h.jobs) == 0 && h.draining != "" {
		close(h.idle)
	}
	h.mu.Unlock()
	h.tasks.Retain(j.Task)
}
