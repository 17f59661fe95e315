package link

import (
	"context"

	"github.com/dragoman-hub/dragoman/core/frame"
)

const (
	// leastCharge is the minimum charge of a message, so that a bound in bytes also bounds
	// the number of small ones.
	leastCharge = 64
	// spareRoom is the largest capacity that an idle link keeps, in messages.
	spareRoom = 64
)

// batch is a sequence of messages with what the writer needs to know of each. The messages
// have a slice of their own, so that a Batcher gets them without a copy.
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

// reset drops the messages and keeps the capacity.
func (b *batch[Out]) reset() {
	clear(b.messages)
	clear(b.notes)
	b.messages, b.notes = b.messages[:0], b.notes[:0]
}

// trim releases the capacity that a burst needed. It is called when the writer loop ends: as
// long as the loop runs, the next burst may need the capacity again.
func (b *batch[Out]) trim() {
	if cap(b.messages) > spareRoom {
		*b = batch[Out]{}
	}
}

// waiter is a Send that waits for room in the queue.
type waiter[Out any] struct {
	message Out
	note    note
	shown   frame.Outgoing // for the frames, where they are kept
	ready   chan struct{}  // closed when admitted or refused
	refused *Reason
}

// Send appends m to the queue; size is its size in bytes, of which at least 64 are counted.
// While the queue is full it waits, first come first served; a message larger than the
// queue is admitted when the queue is empty.
//
// It returns nil when m is queued, which does not mean delivered: see [Link.SendThen].
// Otherwise m is not queued, and the error is the cause of ctx if that ended first, or the
// close reason, a *[Reason].
func (l *Link[In, Out]) Send(ctx context.Context, m Out, size int) error {
	return l.SendThen(ctx, m, size, nil)
}

// SendThen is Send, and calls sent after the transport has taken m; never if it has not, or
// if that is unknown. sent runs in the writer loop: it must return soon and must not call
// Send.
func (l *Link[In, Out]) SendThen(ctx context.Context, m Out, size int, sent func()) error {
	var shown frame.Outgoing
	if l.opts.Frames != nil {
		shown = l.opts.Frames.Outgoing(ctx, m)
	}
	n := note{charge: max(size, leastCharge), sent: sent}

	l.mu.Lock()
	if l.reason != nil {
		l.mu.Unlock()
		return l.reason
	}
	l.sending.Add(n.charge)
	if l.waiting.Len() == 0 && l.fitsLocked(n) {
		l.queue.push(m, n)
		if l.opts.Frames != nil {
			l.opts.Frames.Queue(shown)
		}
		l.queued += n.charge
		if !l.held || l.queued > flushBytes {
			l.wakeLocked()
		}
		l.mu.Unlock()
		return nil
	}
	l.wakeLocked() // writing the queue makes room
	w := &waiter[Out]{message: m, note: n, shown: shown, ready: make(chan struct{})}
	l.waiting.Push(w)
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

// withdraw removes w from the waiters. It returns false if w was admitted or refused
// meanwhile.
func (l *Link[In, Out]) withdraw(w *waiter[Out]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.waiting.Len()
	if l.waiting.DeleteFirst(1, func(o *waiter[Out]) bool { return o == w }); l.waiting.Len() == before {
		return false
	}
	l.sending.Add(-w.note.charge)
	// Waiters after a large message may fit.
	l.admitLocked()
	return true
}

// Drain waits until the transport has taken all that was sent. Otherwise it returns the cause of ctx if
// that ended first, or the close reason, a *[Reason].
func (l *Link[In, Out]) Drain(ctx context.Context) error {
	l.mu.Lock()
	if l.queued == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.drained == nil {
		l.drained = make(chan struct{})
	}
	drained := l.drained
	l.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-l.done:
		return l.reason
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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

// admitLocked queues the messages of waiters, as far as they fit.
func (l *Link[In, Out]) admitLocked() {
	for l.waiting.Len() > 0 && l.fitsLocked(l.waiting.First().note) {
		w, _ := l.waiting.Pop()
		l.enqueueLocked(w.message, w.note)
		if l.opts.Frames != nil {
			l.opts.Frames.Queue(w.shown)
		}
		close(w.ready)
	}
}

// refuseLocked refuses all waiters.
func (l *Link[In, Out]) refuseLocked() {
	for w, ok := l.waiting.Pop(); ok; w, ok = l.waiting.Pop() {
		w.refused = l.reason
		l.sending.Add(-w.note.charge)
		close(w.ready)
	}
}
