package link

import (
	"context"
	"slices"
)

const (
	// leastCharge is what the smallest message costs in the queue, so that a
	// bound in bytes also bounds how many empty ones there are.
	leastCharge = 64
	// spareRoom is for how many messages an idle link keeps room.
	spareRoom = 64
)

// batch is a run of messages and, beside each, what the writer needs to know.
// The messages stand alone so that a Batcher gets them without another copy.
type batch[Out any] struct {
	messages []Out
	notes    []note
}

type note struct {
	charge int
	sent   func()
}

func (b *batch[Out]) push(m Out, n note) {
	b.messages = append(b.messages, m)
	b.notes = append(b.notes, n)
}

// reset forgets the messages and keeps the room.
func (b *batch[Out]) reset() {
	clear(b.messages)
	clear(b.notes)
	b.messages, b.notes = b.messages[:0], b.notes[:0]
}

// trim gives back the room that a burst has needed, before the writer loop goes home:
// as long as the loop stays, the next burst may need it again.
func (b *batch[Out]) trim() {
	if cap(b.messages) > spareRoom {
		*b = batch[Out]{}
	}
}

// waiter is a Send that found the queue full.
type waiter[Out any] struct {
	message Out
	note    note
	ready   chan struct{} // closed when admitted or refused
	refused *Reason
}

// Send queues m, whose size in bytes the caller states, behind everything that
// was sent before. While the queue is full it waits, first come first served; a
// message larger than the whole bound is admitted once the queue is empty. A
// message counts for at least 64 bytes.
//
// It returns nil once m is queued, the cause of ctx when that ended first, and
// the close reason, a *[Reason], when the link is closed. m is not queued then.
// Queued is not delivered: see [Link.SendThen].
func (l *Link[In, Out]) Send(ctx context.Context, m Out, size int) error {
	return l.SendThen(ctx, m, size, nil)
}

// SendThen is Send, and calls sent after the transport has taken m; never if it
// has not, or if nobody can tell. sent runs in the writer loop: it must return
// soon and must not call Send.
func (l *Link[In, Out]) SendThen(ctx context.Context, m Out, size int, sent func()) error {
	n := note{charge: max(size, leastCharge), sent: sent}

	l.mu.Lock()
	if l.reason != nil {
		l.mu.Unlock()
		return l.reason
	}
	if len(l.waiting) == 0 && l.fitsLocked(n) {
		l.queue.push(m, n)
		l.queued += n.charge
		if !l.held || l.queued > flushBytes {
			l.wakeLocked()
		}
		l.mu.Unlock()
		return nil
	}
	l.wakeLocked() // what is queued is to make room
	w := &waiter[Out]{message: m, note: n, ready: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()

	select {
	case <-w.ready:
	case <-ctx.Done():
		if l.withdraw(w) {
			return context.Cause(ctx)
		}
	}
	if w.refused != nil {
		return w.refused
	}
	return nil
}

// withdraw takes w out of the line. It reports false if w has been admitted or
// refused meanwhile.
func (l *Link[In, Out]) withdraw(w *waiter[Out]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, w)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	// Those behind a large message may fit where it did not.
	l.admitLocked()
	return true
}

func (l *Link[In, Out]) fitsLocked(n note) bool {
	return l.queued == 0 || l.queued+n.charge <= l.opts.QueueBytes
}

func (l *Link[In, Out]) enqueueLocked(m Out, n note) {
	l.queue.push(m, n)
	l.queued += n.charge
	if len(l.queue.messages) == 1 {
		l.wakeLocked()
	}
}

// admitLocked queues the messages of those who wait, as far as they fit.
func (l *Link[In, Out]) admitLocked() {
	for len(l.waiting) > 0 && l.fitsLocked(l.waiting[0].note) {
		w := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		l.enqueueLocked(w.message, w.note)
		close(w.ready)
	}
	if len(l.waiting) == 0 {
		l.waiting = nil
	}
}

// refuseLocked turns everybody away who waits.
func (l *Link[In, Out]) refuseLocked() {
	for _, w := range l.waiting {
		w.refused = l.reason
		close(w.ready)
	}
	l.waiting = nil
}
