package task

import (
	"context"
)

// Readers may be ahead of the journal only by a limit: once the journal is further behind,
// they get the end of a task only when it is recorded. In a cluster they get an event only once it is
// recorded, except a request: a hub that takes over a task then knows everything that was
// read of it. The agent of the task does not wait.

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
	if t.remote {
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
		t.endShown = true
	}
	if t.moved != 0 && t.recorded >= t.moved {
		t.leaveRecorder()
	}
	if t.endShown || t.store.limits.Cluster {
		t.showHeld()
	}
	t.store.host.Recorded(t.id, seq)
	t.condense()
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
	if t.recorded < t.last() && (t.showsRecorded() || t.store.host.JournalBehind()) {
		return true
	}
	t.endShown = true
	t.showHeld()
	return false
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

// showsRecorded reports whether readers get nothing before this hub has recorded it. What a remote task has, its
// owner has recorded, but for the record by which the task has left. Callers hold mu.
func (t *Task) showsRecorded() bool {
	return t.store.limits.Cluster && (!t.remote || t.recorded < t.moved)
}

// shown returns the last sequence number that readers may see, but for an end that waits: of a request at once,
// unless its content was dropped, which only this hub knows. Callers hold mu.
func (t *Task) shown() uint64 {
	switch {
	case !t.showsRecorded():
		return t.last()
	case t.dropped:
		return max(t.recorded, t.lost)
	}
	return max(t.recorded, t.lost, 1)
}

// readable returns how many events readers may see; none, if even the first one waits. Callers hold mu.
func (t *Task) readable() int {
	switch {
	case t.showsRecorded():
		return t.index(t.shown())
	case t.endWaits():
		return t.log.Len() - 1
	}
	return t.log.Len()
}

// known returns how many events there are so far for what reads the task once: every task has a first one. Callers hold mu.
func (t *Task) known() int { return max(t.readable(), min(t.log.Len(), 1)) }
