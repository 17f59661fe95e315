package link

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core/timer"
)

// Close ends the link for r and does not wait. The first call wins, whoever
// makes it; later ones do nothing. Senders that wait are turned away at once.
//
// Unless r is [PeerGone], [Slow] or [Unresponsive] what is already queued is
// flushed, within the drain timeout, before the peer is told r and the socket
// goes down. A zero Cause counts as [Normal].
func (l *Link[In, Out]) Close(r Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == nil {
		l.closeLocked(r)
	}
}

// closeLocked is the one place where a link becomes closed.
func (l *Link[In, Out]) closeLocked(r Reason) {
	if r.Cause == 0 {
		r.Cause = Normal
	}
	l.reason = &r
	l.refuseLocked()
	if l.running {
		l.endLocked()
	}
	close(l.done) // last: from here on Run waits for what endLocked has begun
}

// endLocked sees to it that the socket goes down: by the writer loop once it has
// flushed, or past it.
func (l *Link[In, Out]) endLocked() {
	l.cancel()
	l.stopLocked(&l.slow)
	l.stopLocked(&l.silence)
	switch {
	case l.reason.graceful():
		l.armLocked(&l.drain, l.opts.DrainTimeout, l.giveUp)
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

// takeDown closes the socket, which wakes whatever waits for it. It returns once
// the socket is down.
func (l *Link[In, Out]) takeDown() {
	l.down.Do(func() {
		_ = l.conn.Close(l.Reason()) // whatever it says, the connection is over
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopLocked(&l.drain)
}

// endOf is the reason for which a context ended.
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

// armLocked makes a ring after d, unless it is armed. Each alarm always gets the same ring.
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

// stopLocked keeps a from ringing, unless it already does.
func (l *Link[In, Out]) stopLocked(a *alarm) {
	if a.armed && a.timer.Stop() {
		a.armed = false
	}
}
