package link

import (
	"runtime"
	"time"
)

const (
	// batchBytes is the maximum size of one write, so that the write timeout hits a peer
	// that reads nothing, not one that reads a full queue slowly.
	batchBytes = 64 << 10
	// smallBatch is the size up to which a batch yields to other goroutines once, which may
	// add messages to it.
	smallBatch = 8
	// maxIdleEnds is how often the writer loop ends when there is nothing to write. One that
	// is needed more often waits instead: waking it is cheaper than starting another, whose
	// stack has to grow again.
	maxIdleEnds = 4
	// flushBytes is how much Flush writes by itself. With more, the writer loop writes while
	// the caller makes the next messages.
	flushBytes = 8 << 10
	// stuck is the duration from which a write counts as delayed by the peer.
	stuck = time.Second
)

// wakeLocked tells the writer loop that there is work, and starts one if there is none. An
// idle link has no writer loop: nearly all links are idle, and the stack of a waiting loop
// is most of what a link costs.
func (l *Link[In, Out]) wakeLocked() {
	switch {
	case l.flushing: // Flush calls wakeLocked when it is done
	case l.awake:
		l.resting = false
		l.work.Signal()
	case l.running:
		l.awake = true
		l.starts++
		l.wg.Add(1)
		go l.write()
	}
}

// write is the writer loop. It and Flush, which writes instead of it, are the only callers
// of Send and SendBatch. It ends when nothing is queued, or when the link is closed and
// flushed or may not flush any more; then it closes the socket.
func (l *Link[In, Out]) write() {
	defer l.wg.Done()
	for {
		found, idle := l.take()
		switch {
		case idle:
			return
		case !found:
			l.takeDown()
			return
		}
		if err := l.writeBatch(&l.taken); err != nil {
			l.Close(reasonOf(err))
			l.takeDown()
			return
		}
		l.taken.reset()
	}
}

// take exchanges the queue for the empty batch of the writer loop. If it finds nothing, the
// loop must end, because it is idle or because the link is closed.
func (l *Link[In, Out]) take() (found, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.flushing || len(l.queue.messages) == 0 && l.reason == nil {
		if l.starts <= maxIdleEnds && !l.flushing {
			l.taken.trim()
			l.queue.trim()
			l.awake = false
			return false, true
		}
		l.resting = true
		l.work.Wait()
		l.resting = false
	}
	if l.batcher != nil && len(l.queue.messages) <= smallBatch && l.reason == nil {
		// Goroutines that are about to send join this write: larger writes without a
		// timer, at the price of one pass of the scheduler.
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	if l.cut || len(l.queue.messages) == 0 {
		return false, false
	}
	l.queue, l.taken = l.taken, l.queue
	return true, false
}

// Hold keeps messages in the queue until [Link.Flush], from all senders, unless they are
// more than Flush writes by itself. Only one goroutine of a connection may use Hold, and it
// must call Flush before it waits for anything but room in the queue.
func (l *Link[In, Out]) Hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
}

// Flush ends a Hold and writes the queue. If the writer loop is idle and the queue is
// small, it does so in the calling goroutine, which saves a switch of goroutines, and
// returns after one write; else the writer loop does. An error closes the link.
func (l *Link[In, Out]) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	if len(l.queue.messages) == 0 || !l.running || l.reason != nil || l.flushing {
		return
	}
	if l.awake && !l.resting || l.queued > flushBytes {
		l.wakeLocked()
		return
	}
	l.flushing = true
	l.wg.Add(1)
	defer l.wg.Done()
	l.queue, l.taken = l.taken, l.queue
	l.mu.Unlock()
	err := l.writeBatch(&l.taken)
	if err != nil {
		l.Close(reasonOf(err))
	}
	l.mu.Lock()
	l.taken.reset()
	if l.flushing = false; len(l.queue.messages) > 0 || l.reason != nil {
		l.wakeLocked()
	}
}

// writeBatch writes b in pieces. An error means that the connection is lost. It also returns
// nil if the link was cut, which take notices.
func (l *Link[In, Out]) writeBatch(b *batch[Out]) error {
	for from := 0; from < len(b.messages); {
		to, charge := l.piece(b, from)
		if !l.beginWrite() {
			return nil
		}
		var err error
		if l.batcher != nil && to-from > 1 {
			err = l.batcher.SendBatch(l.wire, b.messages[from:to])
		} else {
			err = l.conn.Send(l.wire, b.messages[from])
		}
		if err != nil {
			return err
		}
		l.endWrite(charge)
		for _, n := range b.notes[from:to] {
			if n.sent != nil {
				n.sent()
			}
		}
		from = to
	}
	return nil
}

// piece returns the end of the next write and the charge of its messages.
func (l *Link[In, Out]) piece(b *batch[Out], from int) (to, charge int) {
	to, charge = from+1, b.notes[from].charge
	if l.batcher == nil {
		return to, charge
	}
	for to < len(b.notes) && charge+b.notes[to].charge <= batchBytes {
		charge += b.notes[to].charge
		to++
	}
	return to, charge
}

// beginWrite starts the clock of a write. It returns false if no write may begin.
func (l *Link[In, Out]) beginWrite() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.writing = l.now()
	if l.meter != nil {
		l.written = l.meter.Written()
	}
	// One alarm serves all writes until it rings; then it looks at the clock.
	if l.reason == nil && !l.slow.armed {
		l.armLocked(&l.slow, l.opts.WriteTimeout, l.checkWrite)
	}
	return true
}

// endWrite stops the clock and admits waiting senders.
func (l *Link[In, Out]) endWrite(charge int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now-l.writing >= int64(stuck) {
		l.unblocked = now
	}
	l.writing = 0
	l.queued -= charge
	l.sending.Add(-charge)
	l.admitLocked()
	if l.queued == 0 && l.drained != nil {
		close(l.drained)
		l.drained = nil
	}
}

// checkWrite closes the link if nothing of the current write was taken for too long, else sets the alarm for
// when it would. If nothing is being written, it tells an idle writer loop to end.
func (l *Link[In, Out]) checkWrite() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason != nil {
		return
	}
	if l.writing == 0 {
		l.starts = 0
		l.work.Signal()
		return
	}
	if l.meter != nil {
		if n := l.meter.Written(); n != l.written {
			l.written, l.moved = n, l.now()
		}
	}
	left := l.opts.WriteTimeout - time.Duration(l.now()-max(l.writing, l.moved))
	if left <= 0 {
		l.closeLocked(*Because(Slow, "nothing was taken for %v", l.opts.WriteTimeout))
		return
	}
	l.armLocked(&l.slow, left, l.checkWrite)
}
