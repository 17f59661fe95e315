package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// shown takes secrets out of what a session gets of the tasks of others because it watches all: an
// operator's screen. It belongs to whoever reads the session.
type shown struct {
	tasks *redact.Tasks
	ready []Batch     // text that was held back, as it might have been the beginning of a secret
	alarm *time.Timer // wakes the reader when more is ready
	// again are the tasks that are read again or from the journal, until their end.
	again map[core.TaskID]again
}

// again is a task that is not read from its first event on.
type again struct {
	task *task.Task
	seq  uint64 // what was shown before
}

// resume prepares to show a task after a sequence number: secrets are searched for in the whole
// text.
func (v *shown) resume(s *Session, t *task.Task, seq uint64) {
	if t.From().ID == s.identity.Principal.ID {
		return
	}
	if v.again == nil {
		v.again = map[core.TaskID]again{}
	}
	v.again[t.ID()] = again{t, seq}
	var before []core.Event
	for _, e := range core.Unmerge(t.Events()) {
		if e.Seq <= seq {
			before = append(before, e)
		}
	}
	v.tasks.Add(nil, t.ID(), before, time.Now())
}

// unread returns the events that were not shown before.
func (v *shown) unread(id core.TaskID, events []core.Event) []core.Event {
	if a, ok := v.again[id]; ok {
		for len(events) > 0 && events[0].Seq <= a.seq {
			events = events[1:]
		}
	}
	return events
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
	id := p.Task.ID()
	b.Events = v.unread(id, v.tasks.Add(nil, id, core.Unmerge(p.Events), time.Now()))
	if p.Over {
		delete(v.again, id)
	}
	return b, len(b.Events) > 0
}

// due returns events that were held back for long enough, if there are any.
func (v *shown) due(s *Session) (Batch, bool) {
	if len(v.ready) == 0 {
		all, wait := v.tasks.Due(time.Now())
		for _, r := range all {
			t := s.hub.tasks.Get(r.Task) // it has not ended, so it is there
			if a, ok := v.again[r.Task]; ok {
				t = a.task
			}
			if events := v.unread(r.Task, r.Events); t != nil && len(events) > 0 {
				v.ready = append(v.ready, Batch{Task: t, Role: task.Viewer, Events: events})
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
