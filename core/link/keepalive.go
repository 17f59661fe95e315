package link

import (
	"context"
	"time"
)

// keepAlive pings the peer if it has been silent for PingEvery. It runs in the goroutine of
// its alarm, which exists only for the ping.
//
// An unanswered ping closes the link only if the peer could have answered and we could
// have received the answer: not if the reader loop was busy, nor if the ping waited for a
// write, which has a timeout of its own.
func (l *Link[In, Out]) keepAlive() {
	began, last := l.now(), l.heard.Load()
	if last != busy && l.left(last) <= 0 {
		if l.dead(began, last) {
			return
		}
		if heard := l.heard.Load(); heard != last {
			last = heard
		} else {
			last = l.now() // it has answered
		}
	}
	if last == busy {
		last = l.now()
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == nil {
		l.armLocked(&l.silence, l.left(last), l.keepAlive)
	}
}

// left is how much longer a peer that was last heard of at last may be silent.
func (l *Link[In, Out]) left(last int64) time.Duration {
	return l.opts.PingEvery - time.Duration(l.now()-last)
}

// dead pings the peer, and closes the link if it does not answer.
func (l *Link[In, Out]) dead(began, heard int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), l.opts.PingTimeout)
	defer cancel()
	err := l.pinger.Ping(ctx)
	if err == nil || ctx.Err() == nil {
		// A ping that fails before its timeout found the connection lost: the reader loop
		// finds the same and knows the reason.
		return false
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.unblocked >= began || l.writing != 0 && l.now()-l.writing >= int64(stuck)
	if l.reason != nil || held || l.heard.Load() != heard {
		return false
	}
	l.closeLocked(*Because(Unresponsive, "no answer to a ping for %v", l.opts.PingTimeout))
	return true
}
