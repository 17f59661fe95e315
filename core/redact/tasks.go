package redact

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// HoldTime is how long an event is held back at most.
const HoldTime = time.Second

// Tasks redacts the events of tasks. It is for one goroutine.
type Tasks struct {
	now     func() *Redactor
	tasks   map[core.TaskID]*state
	holding []*state // those that hold something back, the longest waiting first
}

// NewTasks returns a Tasks without tasks. now returns the Redactor that holds, nil for none.
func NewTasks(now func() *Redactor) *Tasks {
	return &Tasks{now: now, tasks: map[core.TaskID]*state{}}
}

// state is a task that has not ended.
type state struct {
	task     core.TaskID
	redactor *Redactor
	queue    []*held // what is held back, in order
	answer   stream
	thinking stream
	since    time.Time // when the first of the queue was held back
	listed   bool      // in Tasks.holding
}

// held is an event that is held back.
type held struct {
	event core.Event
	final bool // it waits only for those before it
}

// Add adds the next events of a task, and appends to out those of the task that are ready:
// every event once and in order. It does not change events. The end of a task releases all.
func (t *Tasks) Add(out []core.Event, task core.TaskID, events []core.Event, now time.Time) []core.Event {
	s := t.stateOf(task)
	if s == nil {
		return append(out, events...)
	}
	r := s.redactor
	for _, e := range events {
		text, isText := e.Body.(core.Text)
		if isText && len(s.queue) == 0 && s.answer.pass(r, text.Text) {
			e.Foreign = r.foreign(e.Foreign)
			out = append(out, e)
			continue
		}
		h := &held{event: e}
		switch b := e.Body.(type) {
		case core.Text:
			h.event.Foreign = r.foreign(e.Foreign)
			s.answer.add(r, h, b.Text)
		case core.Thinking:
			h.event.Foreign = r.foreign(e.Foreign)
			s.thinking.add(r, h, b.Text)
		default:
			h.event, h.final = r.Event(e), true
		}
		if e.Body.Kind().Ends() {
			s.release()
			delete(t.tasks, task)
		}
		if len(s.queue) == 0 && h.final {
			out = append(out, h.event)
			continue
		}
		if len(s.queue) == 0 {
			s.since = now
		}
		s.queue = append(s.queue, h)
		out = s.ready(out)
	}
	if len(s.queue) > 0 && !s.listed {
		s.listed = true
		t.holding = append(t.holding, s)
	}
	return out
}

// stateOf returns the state of a task with the Redactor for its next events, nil if they are not redacted. One that holds
// something back keeps its Redactor.
func (t *Tasks) stateOf(task core.TaskID) *state {
	s, r := t.tasks[task], t.now()
	switch {
	case s != nil && (r == s.redactor || len(s.queue) > 0):
		return s
	case r == nil:
		delete(t.tasks, task)
		return nil
	case s == nil:
		s = &state{task: task}
		t.tasks[task] = s
	}
	s.redactor = r
	return s
}

// Released are events of a task that are held back no longer.
type Released struct {
	Task   core.TaskID
	Events []core.Event
}

// Due returns the events that were held back for HoldTime, and how long it is until others
// are; zero if none is held back.
func (t *Tasks) Due(now time.Time) (all []Released, wait time.Duration) {
	for len(t.holding) > 0 {
		s := t.holding[0]
		if len(s.queue) > 0 {
			if wait = s.since.Add(HoldTime).Sub(now); wait > 0 {
				return all, wait
			}
			s.release()
			all = append(all, Released{s.task, s.ready(nil)})
		}
		s.listed = false
		t.holding[0], t.holding = nil, t.holding[1:]
	}
	t.holding = nil
	return all, 0
}

// Flush returns all events that are held back.
func (t *Tasks) Flush() (all []Released) {
	for _, s := range t.holding {
		if s.release(); len(s.queue) > 0 {
			all = append(all, Released{s.task, s.ready(nil)})
		}
		s.listed = false
	}
	t.holding = nil
	return all
}

// ready appends the events to out that are final, up to the first that is not.
func (s *state) ready(out []core.Event) []core.Event {
	n := 0
	for ; n < len(s.queue) && s.queue[n].final; n++ {
		out = append(out, s.queue[n].event)
	}
	clear(s.queue[:n])
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil
	}
	return out
}

// release makes everything final that is held back.
func (s *state) release() {
	s.answer.settle(s.redactor, true)
	s.thinking.settle(s.redactor, true)
}
