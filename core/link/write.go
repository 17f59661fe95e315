package link

import (
	"context"
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
	// stuck is from when on a write counts as one that the peer held up.
	stuck = time.Second
)

// write is the writer loop: the only caller of Send and SendBatch. It ends when
// the link is closed and flushed, or may flush no more, and leaves the socket
// down.
func (l *Link[In, Out]) write(wire context.Context) {
	defer l.wg.Done()
	defer l.takeDown()
	var b batch[Out]
	for l.take(&b) {
		if err := l.writeBatch(wire, &b); err != nil {
			l.Close(reasonOf(err))
			return
		}
		b.reset()
	}
}

// take waits for messages and exchanges all that are queued for the empty b. It
// reports false when nothing more is to be written.
func (l *Link[In, Out]) take(b *batch[Out]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue.messages) == 0 && l.reason == nil {
		b.trim()
		l.queue.trim()
		l.work.Wait()
	}
	if l.batcher != nil && len(l.queue.messages) <= smallBatch && l.reason == nil {
		// Whoever is about to send gets on board, at the price of a look at the run
		// queue: larger writes without a timer.
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	if l.cut || len(l.queue.messages) == 0 {
		return false
	}
	l.queue, *b = *b, l.queue
	return true
}

// writeBatch writes b in pieces. An error says that the connection is lost; nil
// also comes of a link that was cut, for take to notice.
func (l *Link[In, Out]) writeBatch(wire context.Context, b *batch[Out]) error {
	for from := 0; from < len(b.messages); {
		to, charge := l.piece(b, from)
		if !l.beginWrite() {
			return nil
		}
		var err error
		if l.batcher != nil && to-from > 1 {
			err = l.batcher.SendBatch(wire, b.messages[from:to])
		} else {
			err = l.conn.Send(wire, b.messages[from])
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
// again when that could next be so.
func (l *Link[In, Out]) judgeWrite() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason != nil || l.writing == 0 {
		return
	}
	left := l.opts.WriteTimeout - time.Duration(l.now()-l.writing)
	if left <= 0 {
		l.closeLocked(*Because(Slow, "nothing was taken for %v", l.opts.WriteTimeout))
		return
	}
	l.armLocked(&l.slow, left, l.judgeWrite)
}
