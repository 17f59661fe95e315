package link

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core/timer"
)

// Close ends the link for r and does not block. Only the first call has an effect. Waiting
// senders get an error at once.
//
// Unless r is [PeerGone], [Slow] or [Unresponsive], the queue is flushed, within 2 s,
// before r is sent to the peer and the socket is closed. A zero Cause means
// [Normal].
func (l *Link[In, Out]) Close(r Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == nil {
		l.closeLocked(r)
	}
}

// closeLocked is the only place where a link becomes closed.
func (l *Link[In, Out]) closeLocked(r Reason) {
	if r.Cause == 0 {
		r.Cause = Normal
	}
	l.reason = &r
	l.refuseLocked()
	if l.running {
		l.endLocked()
	}
	close(l.done) // last: from now on Run waits for what endLocked started
}

// endLocked has the socket closed: by the writer loop after the flush, or directly.
func (l *Link[In, Out]) endLocked() {
	l.cancel()
	l.stopLocked(&l.slow)
	l.stopLocked(&l.silence)
	switch {
	case l.reason.graceful():
		l.armLocked(&l.drain, drainTime, l.giveUp)
	case l.writing != 0:
		l.cut = true
		l.wg.Go(l.takeDown) // wakes the writer loop
	default:
		l.cut = true
	}
	l.wakeLocked()
}

// giveUp ends a flush that takes too long.
func (l *Link[In, Out]) giveUp() {
	l.mu.Lock()
	l.cut = true
	l.mu.Unlock()
	l.takeDown()
}

// takeDown closes the socket, which wakes everything that waits on it, and returns when that
// is done.
func (l *Link[In, Out]) takeDown() {
	l.down.Do(func() {
		_ = l.conn.Close(l.Reason()) // whatever the error, the connection is over
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopLocked(&l.drain)
}

// endOf returns why a context ended.
func endOf(ctx context.Context) Reason {
	cause := context.Cause(ctx)
	var r *Reason
	if errors.As(cause, &r) {
		return *r
	}
	return Reason{Cause: ShuttingDown, Text: "shutting down", Err: cause}
}

// alarm is a timer that keeps the time for which it was set first. The lock of the link
// guards it.
type alarm struct {
	timer *timer.Timer
	armed bool
}

// armLocked sets a to call ring after d, unless it is armed. An alarm always gets the same ring.
func (l *Link[In, Out]) armLocked(a *alarm, d time.Duration, ring func()) {
	if a.armed {
		return
	}
	a.armed = true
	if a.timer == nil {
		a.timer = timer.New(&l.wg, func() {
			l.mu.Lock()
			a.armed = false
			l.mu.Unlock()
			ring()
		})
	}
	a.timer.Set(d)
}

// stopLocked disarms a. A running call of ring continues.
func (l *Link[In, Out]) stopLocked(a *alarm) {
	if a.armed && a.timer.Stop() {
		a.armed = false
	}
}
