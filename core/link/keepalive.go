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
	began, last := l.now(), l.lastReceive.Load()
	if last != busy && l.left(last) <= 0 {
		if l.dead(began, last) {
			return
		}
		if latest := l.lastReceive.Load(); latest != last {
			last = latest
		} else {
			last = l.now() // it answered the ping
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

// left returns how much longer a peer may be silent if the reader loop last received at last.
func (l *Link[In, Out]) left(last int64) time.Duration {
	return l.opts.PingEvery - time.Duration(l.now()-last)
}

// dead pings the peer, and closes the link if it does not answer.
func (l *Link[In, Out]) dead(began, last int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), l.opts.PingTimeout)
	defer cancel()
	err := l.pinger.Ping(ctx)
	if err == nil || ctx.Err() == nil {
		// A ping that fails before its timeout means that the connection is lost. The reader
		// loop notices that too and knows the reason.
		return false
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.unblocked >= began || l.writing != 0 && l.now()-l.writing >= int64(stuck)
	if l.reason != nil || held || l.lastReceive.Load() != last {
		return false
	}
	l.closeLocked(*Because(Unresponsive, "no answer to a ping for %v", l.opts.PingTimeout))
	return true
}
