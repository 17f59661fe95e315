package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// shown takes secrets out of what a session gets of the tasks of others because it watches all: an
// operator's screen. It belongs to whoever reads the session.
type shown struct {
	tasks *redact.Tasks
	ready []Batch     // text that was held back, as it might have been the beginning of a secret
	alarm *time.Timer // wakes the reader when more is ready
}

// redactAll begins to redact what the session gets because it watches all tasks, unless it is a part
// of the program, which keeps what it learns from those who may not know it.
func (s *Session) redactAll() {
	if s.hub.redact != nil && !s.identity.Principal.Component {
		s.shown.CompareAndSwap(nil, &shown{tasks: redact.NewTasks(s.hub.redact)})
	}
}

// show returns what the session is shown of a task that it did not ask to read by its id; false
// if that waits.
func (v *shown) show(s *Session, p task.Piece) (Batch, bool) {
	b := Batch{Task: p.Task, Role: p.Role, Events: p.Events, Gap: p.Gap}
	if len(p.Events) == 0 || p.Task.From().ID == s.identity.Principal.ID {
		return b, true
	}
	b.Events = v.tasks.Add(nil, p.Task.ID(), p.Events, time.Now())
	return b, len(b.Events) > 0
}

// due returns events that were held back for long enough, if there are any.
func (v *shown) due(s *Session) (Batch, bool) {
	if len(v.ready) == 0 {
		all, wait := v.tasks.Due(time.Now())
		for _, r := range all {
			if t := s.hub.tasks.Get(r.Task); t != nil { // it has not ended, so it is there
				v.ready = append(v.ready, Batch{Task: t, Role: task.Viewer, Events: r.Events})
			}
		}
		switch {
		case wait <= 0:
		case v.alarm == nil:
			v.alarm = time.AfterFunc(wait, s.inbox.rouse)
		default:
			v.alarm.Reset(wait)
		}
	}
	if len(v.ready) == 0 {
		return Batch{}, false
	}
	b := v.ready[0]
	v.ready = v.ready[1:]
	return b, true
}
