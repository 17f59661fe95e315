package hub

import (
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// What is told runs ahead of the journal by no more than a limit: once the journal is
// further behind, the end of a task is told only when it is recorded. Text never waits.
// The agent of a task never waits either: it has the end from itself, or is to stop.

// lag is the age of the oldest event that the recorder has not written yet, or for how
// long it writes something else.
type lag struct{ since atomic.Pointer[time.Time] }

// begin notes what is about to be written.
func (l *lag) begin(records []journal.Record) {
	if len(records) == 0 {
		return
	}
	oldest := records[0].Event.At
	for _, r := range records[1:] {
		if r.Event.At.Before(oldest) {
			oldest = r.Event.At
		}
	}
	l.since.Store(&oldest)
}

// hold notes that the journal waits for something else from now on.
func (l *lag) hold() {
	now := time.Now()
	l.since.CompareAndSwap(nil, &now)
}

// end notes that everything is written.
func (l *lag) end() { l.since.Store(nil) }

// exceeds reports whether the journal is further behind than the limit; a negative limit
// is always exceeded.
func (l *lag) exceeds(limit time.Duration) bool {
	if limit < 0 {
		return true
	}
	since := l.since.Load()
	return since != nil && time.Since(*since) > limit
}

// endWaits reports whether the task has an end that may not be told yet. Once it may, it
// may for good and to everybody: whoever looks first wakes those who waited. Callers
// hold mu.
func (t *Task) endWaits() bool {
	if t.state != Ended || t.shown {
		return false
	}
	if t.recorded < t.last() && t.hub.recorder.lag.exceeds(t.hub.limits.JournalLag) {
		return true
	}
	t.showEnd()
	return false
}

// readable returns how many events may be told. Callers hold mu.
func (t *Task) readable() int {
	if t.endWaits() {
		return t.log.len() - 1
	}
	return t.log.len()
}

// lastEvent returns the last event, told or not.
func (t *Task) lastEvent() core.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.log.last()
}

// showEnd lets the end be told, and wakes the readers that waited for it. Callers hold mu.
func (t *Task) showEnd() {
	t.shown = true
	for r := t.readers; r != nil; r = r.after {
		if r.held {
			r.held = false
			t.wake(r)
		}
	}
}

// wake makes a reader ready. Callers hold mu.
func (t *Task) wake(r *reader) {
	if !r.queued {
		r.queued = true
		r.sess.inbox.push(r)
	}
}

// waitsForRecord reports whether an end may have to be recorded before the reader is told
// of it. Callers hold the mu of the task.
func (r *reader) waitsForRecord() bool { return r.role != Agent && !r.sess.records }
