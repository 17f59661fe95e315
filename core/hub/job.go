package hub

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// job is a task that the hub has not ended yet.
type job struct {
	*task.Task
	opener *Session // maybe a child session
	// asker is the requester with its rights, of a job that was run elsewhere before; else nil.
	asker *core.Principal

	// Guarded by Hub.mu.
	shunned []string    // hubs that did not take it
	why     *core.Fault // why it is on its way to another hub
	waiting *Session    // the agent in whose queue it is, or nil
	tried   []attempt
	first   holding // of the first agent: most tasks have one
}

// From returns the requester.
func (j *job) From() core.Principal {
	if j.asker != nil {
		return *j.asker
	}
	return j.Task.From()
}

// tryAll notes agents that have failed.
func (j *job) tryAll(agents []core.AgentID) {
	for _, id := range agents {
		j.tried = append(j.tried, attempt{agent: id})
	}
}

// attempt is a failed attempt at a task, which is not repeated: neither with the agent that
// failed nor over the connection that was lost. A new connection of an agent that lost its
// own counts as another agent.
type attempt struct {
	agent core.AgentID
	sess  *Session
}

// holding is a task that an agent has and did not end yet.
type holding struct {
	job   *job
	slot  bool
	timer *time.Timer // frees the slot of a task that ended without its agent
}

// Report accepts an event of a task from the agent of the session. It returns a
// not_authorized Fault when the session does not have the task, a conflict Fault when the
// task has ended, an invalid Fault for a kind that agents do not report, and a too_large
// Fault when the task exceeds its limit, which ends it. Late events are counted and not
// delivered, but the usage of an agent that still works on the task counts.
func (s *Session) Report(id core.TaskID, body core.Body, foreign *core.Foreign) error {
	err := s.report(id, body, foreign)
	if s.identity.Frames != nil && !errors.Is(err, notAuthorized) {
		s.noteEvent(id, true, body.Kind(), err != nil)
	}
	return err
}

func (s *Session) report(id core.TaskID, body core.Body, foreign *core.Foreign) error {
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
		s.hub.noteBusy(s, b.Fault)
		again, err := s.hub.attemptFailed(w.job, s, attempt{agent: s.AgentID()}, b, foreign)
		if again {
			s.hub.passOn(w.job, b.Fault)
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
	return w.job.Report(s.peer(), body, foreign)
}

// busy is how long an agent wants no other task, and why.
type busy struct {
	until time.Time
	why   *core.Fault
}

// noteBusy notes until when an agent wants no other task, if it says so: requests that prefer it go to others
// until then.
func (h *Hub) noteBusy(s *Session, f *core.Fault) {
	if f.RetryAfter <= 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.busy = &busy{until: time.Now().Add(time.Duration(f.RetryAfter)), why: f}
}

// notHeld returns why a session that does not have the task may not report on it:
// its agent has ended the task, or never had it.
func (h *Hub) notHeld(s *Session, id core.TaskID) error {
	agent := s.AgentID()
	if t := h.tasks.Get(id); t != nil && sessionOf(h.roster.Member(agent)) == s && t.Agent() == agent && t.HasEnded() {
		h.Count("report.late")
		return core.NewFault(core.CodeConflict, "task %s has ended", id)
	}
	h.Count("report.not_held")
	return core.NewFault(core.CodeNotAuthorized, "this connection does not have task %s", id)
}

// conclude ends a task as its agent reported.
func (s *Session) conclude(j *job, body core.Body, foreign *core.Foreign) error {
	now := time.Now()
	err := j.Conclude(s.peer(), now, body, foreign)
	s.hub.release(s, j, now)
	if err == nil {
		s.hub.ended(j)
	}
	return err
}

// attemptFailed ends a task, or takes it from its agent and reports that another may try:
// where the request allows it and the agent has said nothing yet.
func (h *Hub) attemptFailed(j *job, s *Session, by attempt, failed core.Failed, foreign *core.Foreign) (again bool, err error) {
	again, err = j.Fail(s.peer(), failed, foreign)
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

// Delivered records that the transport of the agent took the assignment of a task, for the
// receipt (promise P4). A notice is done with it.
func (s *Session) Delivered(id core.TaskID) {
	s.mu.Lock()
	w := s.work[id]
	s.mu.Unlock()
	if w == nil {
		return
	}
	w.job.Delivered(s.peer())
	if w.job.IsNotice() {
		w.job.End(core.Done{})
		if !w.slot {
			s.hub.release(s, w.job, time.Now())
		}
	}
}

// ended removes a task that has ended from the queues, and lets the store drop old ones.
func (h *Hub) ended(j *job) {
	j.opener.mu.Lock()
	delete(j.opener.opened, j.Task)
	j.opener.mu.Unlock()
	h.mu.Lock()
	if from := j.waiting; from != nil {
		j.waiting = nil
		h.unqueue(from, j)
	}
	h.notPlacing(j.ID())
	if h.noticed[j.ID()] != nil { // it ends before all hubs have said whether anybody gets it
		h.recorder.Record(j.Task)
		delete(h.noticed, j.ID())
	}
	delete(h.jobs, j.ID())
	h.returned(j.Task)
	h.noteIdle()
	h.mu.Unlock()
	h.crossings.add(j)
	h.withdrawCalls(j.Task)
	if h.tracer != nil && j.Trace().IsSampled() {
		h.tracer.Ended(j.ID())
	}
	h.tasks.Retain(j.Task)
}
