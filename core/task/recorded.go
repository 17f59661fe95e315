package task

import (
	"context"
)

// What is told runs ahead of the journal by no more than a limit: once the journal is
// further behind, the end of a task is told only when it is recorded. Text never waits.
// The agent of a task never waits either: it has the end from itself, or is to stop.

type recordWaiter struct {
	seq  uint64
	done chan struct{}
}

// Recorded waits until the journal has the task up to seq: then it survives what
// the journal's sync policy says. It returns the context's error.
func (t *Task) Recorded(ctx context.Context, seq uint64) error {
	t.mu.Lock()
	if t.recorded >= seq || t.loaded {
		t.mu.Unlock()
		return nil
	}
	w := recordWaiter{seq, make(chan struct{})}
	t.waiters = append(t.waiters, w)
	t.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// IsRecorded reports whether the journal has all of the task so far.
func (t *Task) IsRecorded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recorded >= t.last()
}

// SetRecorded notes how far the journal has got, and tells those who wait for it.
func (t *Task) SetRecorded(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recorded = max(t.recorded, seq)
	if t.state == Ended && t.recorded >= t.last() {
		t.showEnd()
	}
	left := t.waiters[:0]
	for _, w := range t.waiters {
		if w.seq <= seq {
			close(w.done)
		} else {
			left = append(left, w)
		}
	}
	t.waiters = left
	t.store.host.Recorded(t.id, seq)
}

// endWaits reports whether the task has an end that may not be told yet. Once it may, it
// may for good and to everybody: whoever looks first wakes those who waited. Callers
// hold mu.
func (t *Task) endWaits() bool {
	if t.state != Ended || t.shown {
		return false
	}
	if t.recorded < t.last() && t.store.host.JournalBehind() {
		return true
	}
	t.showEnd()
	return false
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

// readable returns how many events may be told. Callers hold mu.
func (t *Task) readable() int {
	if t.endWaits() {
		return t.log.Len() - 1
	}
	return t.log.Len()
}
