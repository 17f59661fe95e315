package task

import (
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// Redacted returns the form of the task for those to whom a list or a stream shows it though somebody else
// asked: what the host's redactor takes out is in nothing that this form says. Ids, cursors, states and
// commands are those of the task; text that may be the beginning of a secret comes up to
// [redact.HoldTime] later. There is no way back to the form as it was said.
func (t *Task) Redacted() *Task { return &t.redacted }

// IsRedacted reports whether this is the redacted form.
func (t *Task) IsRedacted() bool { return t.hides }

// redactor returns what is taken out of what this form says; nil for nothing.
func (t *Task) redactor() *redact.Redactor {
	if !t.hides {
		return nil
	}
	return t.store.host.Redactor()
}

// said returns events as this form says them: of the redacted one without the text at the end that
// may be the beginning of a secret.
func (t *Task) said(events []core.Event) []core.Event {
	if !t.hides {
		return events
	}
	tasks := redact.NewTasks(t.store.host.Redactor)
	out := t.pass(tasks, core.Unmerge(events))
	due, _ := tasks.Due(time.Now())
	if len(out) == 0 && len(due) == 0 { // there is always an event, for those who go on after it
		due = tasks.Flush()
	}
	for _, r := range due {
		out = append(out, r.Events...)
	}
	return out
}

// pass returns what is ready of events that came when they say.
func (t *Task) pass(tasks *redact.Tasks, events []core.Event) (out []core.Event) {
	for i, e := range events {
		out = tasks.Add(out, t.id, events[i:i+1], e.At)
	}
	return out
}

// veil is what a reader of the redacted form is shown.
type veil struct {
	mu    sync.Mutex // locked before that of the task
	tasks *redact.Tasks
	ready []core.Event // they come next
	alarm *time.Timer  // wakes the reader once text was held back for long enough
	first core.Cursor  // where the first event is that the reader gets; zero before it is known
}

// take is [Reader.Take] for the redacted form.
func (v *veil) take(r *Reader) (Piece, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, news := r.take()
	if p.Task == nil { // it was closed
		return p, false
	}
	if v.tasks == nil {
		v.tasks = redact.NewTasks(p.Task.store.host.Redactor)
	}
	out, now := v.ready, time.Now()
	if len(p.Events) > 0 {
		v.begin(p.Task, p.Events[0])
		out = v.tasks.Add(out, p.Task.id, core.Unmerge(p.Events), now)
	}
	due, wait := v.tasks.Due(now)
	for _, d := range due {
		out = append(out, d.Events...)
	}
	for len(out) > 0 && out[0].Cursor().Compare(v.first) < 0 {
		out = out[1:]
	}
	v.ready = nil
	if p.Gap != nil { // what was held back comes behind it
		if v.ready = out; len(out) > 0 {
			r.rouse()
		}
		out = nil
	}
	if wait > 0 {
		v.wakeIn(wait, r)
	}
	p.Events = out
	return p, news && p.Gap != nil || len(out) > 0
}

// begin has the text before the first event that the reader gets looked at: a secret may begin there.
func (v *veil) begin(t *Task, first core.Event) {
	if v.first != (core.Cursor{}) {
		return
	}
	v.first = core.Cursor{Epoch: first.Epoch, Seq: first.Seq}
	log := t.plain.Log()
	all := core.Unmerge(log.slice(log.Len()))
	if n := slices.IndexFunc(all, func(e core.Event) bool { return e.Cursor().Compare(v.first) >= 0 }); n >= 0 {
		all = all[:n]
	}
	t.pass(v.tasks, all)
}

// wakeIn wakes the reader after a time.
func (v *veil) wakeIn(wait time.Duration, r *Reader) {
	if v.alarm == nil {
		v.alarm = time.AfterFunc(wait, r.rouse)
		return
	}
	v.alarm.Reset(wait)
}

// rouse has the reader look again.
func (r *Reader) rouse() {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	if !r.gone {
		r.task.wake(r)
	}
}
