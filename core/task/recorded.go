package task

import (
	"context"
)

// Readers may be ahead of the journal only by a limit: once the journal is further behind,
// they get the end of a task only when it is recorded. Text never waits, and the agent of
// the task does not either: it ended the task itself, or has to stop.

type recordWaiter struct {
	seq  uint64
	done chan struct{}
}

// Recorded waits until the journal has the task up to seq. It returns the context's error.
func (t *Task) Recorded(ctx context.Context, seq uint64) error {
	t.mu.Lock()
	if t.hasRecorded(seq) {
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

// HasRecorded reports whether the journal has the task up to seq.
func (t *Task) HasRecorded(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hasRecorded(seq)
}

// hasRecorded is HasRecorded. Callers hold mu.
func (t *Task) hasRecorded(seq uint64) bool { return t.recorded >= seq || t.loaded }

// IsRecorded reports whether the journal has all of the task so far. Of one that another hub owns it
// has to have what this hub has said: the record of the move, if it was here.
func (t *Task) IsRecorded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mirror {
		return t.recorded >= t.moved
	}
	return t.recorded >= t.last()
}

// SetRecorded notes that the journal has the task up to seq, and wakes those who wait for it.
func (t *Task) SetRecorded(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteRecorded(seq)
	if t.state == Ended && t.recorded >= t.last() {
		t.showEnd()
	}
	if t.moved != 0 && t.recorded >= t.moved {
		t.showMove()
	}
	t.store.host.Recorded(t.id, seq)
}

// noteRecorded wakes those who wait until seq is recorded. Callers hold mu.
func (t *Task) noteRecorded(seq uint64) {
	t.recorded = max(t.recorded, seq)
	left := t.waiters[:0]
	for _, w := range t.waiters {
		if w.seq <= seq {
			close(w.done)
		} else {
			left = append(left, w)
		}
	}
	t.waiters = left
}

// endWaits reports whether the task has an end that readers may not see yet. The first call
// that finds that they may wakes the readers that waited; from then on all may. Callers hold
// mu.
func (t *Task) endWaits() bool {
	if t.state != Ended || t.endShown {
		return false
	}
	if t.recorded < t.last() && t.store.host.JournalBehind() {
		return true
	}
	t.showEnd()
	return false
}

// showEnd shows the end to readers, and wakes those that waited for it. Callers hold mu.
func (t *Task) showEnd() {
	t.endShown = true
	t.showHeld()
}

// showHeld wakes the readers that waited for what was to be recorded. Callers hold mu.
func (t *Task) showHeld() {
	for r, next := t.readers, (*Reader)(nil); r != nil; r = next {
		next = r.after
		if r.held {
			r.held = false
			t.wake(r)
		}
	}
}

// readable returns how many events readers may see. Callers hold mu.
func (t *Task) readable() int {
	if t.withholds() {
		return t.log.Len() - 1
	}
	return t.log.Len()
}

// withholds reports whether the last event is one that readers may see only once it is recorded:
// an end, or the record of a move. Callers hold mu.
func (t *Task) withholds() bool {
	return t.endWaits() || t.moved != 0 && t.recorded < t.moved && t.last() == t.moved
}
