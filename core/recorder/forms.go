package recorder

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// forms gives events the form in which they are stored: redacted, and text joined to segments.
// Both hold events back for a while. It is for one goroutine.
type forms struct {
	*journal.Segmenter
	tasks *redact.Tasks // nil if nothing is redacted
	ready []core.Event
}

func newForms(now func() *redact.Redactor, age time.Duration) *forms {
	f := &forms{Segmenter: journal.NewSegmenter(age)}
	if now != nil {
		f.tasks = redact.NewTasks(now)
	}
	return f
}

// Add adds events of one task, and appends to out the records that are due.
func (f *forms) Add(out []journal.Record, task core.TaskID, events []core.Event, now time.Time) []journal.Record {
	if f.tasks == nil {
		return f.Segmenter.Add(out, task, events, now)
	}
	f.ready = f.tasks.Add(f.ready[:0], task, events, now)
	out = f.Segmenter.Add(out, task, f.ready, now)
	clear(f.ready)
	return out
}

// Due appends to out what was held back for long enough, and returns how long it is until more
// is; zero if nothing is held back.
func (f *forms) Due(out []journal.Record, now time.Time) ([]journal.Record, time.Duration) {
	var later time.Duration
	if f.tasks != nil {
		var all []redact.Released
		all, later = f.tasks.Due(now)
		out = f.released(out, all, now)
	}
	out, wait := f.Segmenter.Due(out, now)
	if wait == 0 || later > 0 && later < wait {
		wait = later
	}
	return out, wait
}

// Flush appends to out all that is held back.
func (f *forms) Flush(out []journal.Record) []journal.Record {
	if f.tasks != nil {
		out = f.released(out, f.tasks.Flush(), time.Now())
	}
	return f.Segmenter.Flush(out)
}

func (f *forms) released(out []journal.Record, all []redact.Released, now time.Time) []journal.Record {
	for _, r := range all {
		out = f.Segmenter.Add(out, r.Task, r.Events, now)
	}
	return out
}
