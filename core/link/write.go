package link

import (
	"runtime"
	"time"
)

const (
	// batchBytes bounds one write, so that its timeout judges a peer that takes
	// nothing and not one that takes a full queue slowly.
	batchBytes = 64 << 10
	// smallBatch is up to how many messages a batch is worth waiting for more,
	// for as long as it takes to let the other goroutines run once.
	smallBatch = 8
	// homely is up to how often the writer loop goes home when there is nothing to
	// write. One that is needed more often stays: to start it anew costs more than to
	// wake it, since a new stack has to grow.
	homely = 4
	// flushBytes is up to how many bytes Flush writes by itself. A burst is worth a loop
	// that writes while the next messages are made.
	flushBytes = 8 << 10
	// stuck is from when on a write counts as one that the peer held up.
	stuck = time.Second
)

// wakeLocked has the writer loop look what there is for it. An idle link has none:
// nearly all are idle, and the stack of a loop that waits is most of what one costs.
func (l *Link[In, Out]) wakeLocked() {
	switch {
	case l.lent: // the Flush has it looked at again
	case l.awake:
		l.resting = false
		l.work.Signal()
	case l.running:
		l.awake = true
		l.woken++
		l.wg.Add(1)
		go l.write()
	}
}

// write is the writer loop: with Flush, which writes in its place, the only caller of
// Send and SendBatch. It ends when
// nothing is queued, until it is woken again; or when the link is closed and flushed,
// or may flush no more, and leaves the socket down.
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

// take exchanges all that is queued for the empty batch of the writer loop. Where
// nothing is found, the loop is to end: idle, or with the link.
func (l *Link[In, Out]) take() (found, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.lent || len(l.queue.messages) == 0 && l.reason == nil {
		if l.woken <= homely && !l.lent {
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
		// Whoever is about to send gets on board, at the price of a look at the run
		// queue: larger writes without a timer.
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

// Hold lets what is sent from here on, by anybody, wait in the queue for the [Link.Flush]
// of the caller, who is the one goroutine of the connection that sends what others have
// for the peer. It calls Flush before it waits for anything but room in the queue. More
// than a Flush writes by itself does not wait.
func (l *Link[In, Out]) Hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
}

// Flush ends a Hold and writes what is queued, in the calling goroutine where the writer
// loop has nothing to do: it spares a small message the way through another goroutine. It
// waits as long as one write takes, and leaves more than that to the writer loop. An error
// closes the link.
func (l *Link[In, Out]) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	if len(l.queue.messages) == 0 || !l.running || l.reason != nil || l.lent {
		return
	}
	if l.awake && !l.resting || l.queued > flushBytes {
		l.wakeLocked()
		return
	}
	l.lent = true
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
	if l.lent = false; len(l.queue.messages) > 0 || l.reason != nil {
		l.wakeLocked()
	}
}

// writeBatch writes b in pieces. An error says that the connection is lost; nil
// also comes of a link that was cut, for take to notice.
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

// piece returns the end of the next write and what its messages are charged.
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

// beginWrite starts the clock of one write. It reports false if none may begin.
func (l *Link[In, Out]) beginWrite() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.writing = l.now()
	// One alarm serves all writes of its time; it looks at the clock when it rings.
	if l.reason == nil && !l.slow.armed {
		l.armLocked(&l.slow, l.opts.WriteTimeout, l.judgeWrite)
	}
	return true
}

// endWrite stops the clock and makes room for those who wait.
func (l *Link[In, Out]) endWrite(charge int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now-l.writing >= int64(stuck) {
		l.unblocked = now
	}
	l.writing = 0
	l.queued -= charge
	l.admitLocked()
}

// judgeWrite closes the link if the write under way has taken too long. It rings
// again when that could next be so. Where nothing is being written, it sends the
// writer loop home.
func (l *Link[In, Out]) judgeWrite() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason != nil {
		return
	}
	if l.writing == 0 {
		l.woken = 0
		l.work.Signal()
		return
	}
	left := l.opts.WriteTimeout - time.Duration(l.now()-l.writing)
	if left <= 0 {
		l.closeLocked(*Because(Slow, "nothing was taken for %v", l.opts.WriteTimeout))
		return
	}
	l.armLocked(&l.slow, left, l.judgeWrite)
}
