package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// What a session does that stands for another hub.

// LatestOpening is how long after its deadline an opening is adopted. Who has sent it, and neither hears of it nor finds
// the task in the journal, ends it after twice that time: by then something of it is stored, or never will be.
const LatestOpening = 15 * time.Second

// Adopt has this hub run a task that was opened at the hub of the session. The session
// becomes a reader of it. The task ends as failed if no agent of any hub gets it. Adopt reports false if this
// hub takes no tasks any more, or if the task comes long after its deadline: then it does not know the task.
func (s *Session) Adopt(o Opening) bool {
	h := s.hub
	opened, ok := o.Opened.Body.(core.Opened)
	if !ok {
		h.Count("peer.invalid")
		return true
	}
	if h.tasks.Get(opened.Task) != nil {
		return true // it came before, over a connection that was lost
	}
	if late := opened.Request.Deadline; !late.IsZero() && time.Since(late) > LatestOpening { // the hub that opened it may have ended it
		return false
	}
	chain := policy.Chain{Hops: opened.Hops, Agents: opened.Chain}
	j := &job{Task: h.tasks.New(o.From, chain, opened.Request, opened.Trace, opened.Key), opener: s}
	if opened.DefaultDeadline {
		j.SetDefaultDeadline()
	}
	h.mu.Lock()
	if h.end.sealed { // one that drains finishes what the others sent before they knew
		h.mu.Unlock()
		return false
	}
	h.tasks.Adopt(j.Task, o.Opened, nil)
	h.jobs[j.ID()] = j
	h.admitted.Add(1)
	defer h.admitted.Done()
	h.enter(s, j, &core.Open{Keep: o.Keep})
	h.mu.Unlock()
	err := h.afford(j.Task)
	if err == nil {
		if err = h.begin(j, o.Private); err != nil && h.reroute(j, core.AsFault(err)) == nil {
			err = nil
		}
	}
	seen := uint64(1) // by the hub that opened it
	if err != nil {
		j.DropContent()
		h.refuse(j, err)
		seen = 0 // what that has of it drops the content too
	}
	s.viewAfter(j.Task, seen, nil)
	h.record(j)
	return true
}

// Perform executes a command that passed the door of another hub, in the name of its principal. It does
// not wait.
func (s *Session) Perform(c core.Call) error {
	_, err := s.hub.do(NoWait, s, c, nil)
	return err
}

// LeaveTasks ends the session's reading of all tasks, also of those that have ended and whose end is still
// to be told: the connection that carried the events has ended,
// and the other hub says over the next one which of them have not come. What it opened goes on. A session
// for another hub has no readers but views, so that none is left.
func (s *Session) LeaveTasks() { s.views.clear() }

// LeaveTask ends the session's reading of a task, for a hub that follows it where it is now.
func (s *Session) LeaveTask(id core.TaskID) {
	t := s.hub.tasks.Get(id)
	if t == nil {
		return
	}
	s.Unwatch(t)
	s.mu.Lock()
	delete(s.opened, t)
	s.mu.Unlock()
}
