package hub

import (
	"context"
	"sync"
	"time"
)

const (
	// homely is up to how often the goroutine of an attendance ends when there is no
	// news. One that is needed more often waits for more: to start it anew costs more
	// than to wake it, since a new stack has to grow.
	homely = 4
	// attentive is how long it does so.
	attentive = 30 * time.Second
)

// attendance is what [Session.Attend] has begun.
type attendance struct {
	ctx   context.Context //nolint:containedctx // it is for how long the session is attended
	sess  *Session
	serve func(Batch, error) bool
	// running is the goroutine, while there is one, as awake says, which the lock of the
	// feed guards; woken is how often there was, since it last waited in vain, and belongs
	// to it.
	running sync.WaitGroup
	awake   bool
	woken   int
}

// Attend has serve called with what [Session.Next] would return, one after the other,
// in a goroutine that there is while there is news and for a while after: for sessions
// of which most are idle, since a goroutine that waits is most of what one costs. That
// ends when ctx does, when serve returns false or when it was given an error. Nobody
// may call Next beside it. The function that Attend returns is called once, not by
// serve: it waits until serve has returned, and will not be called any more. Then the
// session may be attended anew.
func (s *Session) Attend(ctx context.Context, serve func(Batch, error) bool) (leave func()) {
	a := &attendance{ctx: ctx, sess: s, serve: serve}
	f := &s.inbox
	f.mu.Lock()
	f.attendance = a
	f.signal() // there may be news already
	f.mu.Unlock()
	return func() {
		f.dismiss(a)
		a.running.Wait()
	}
}

// run serves what is new. It returns when nothing is.
func (a *attendance) run() {
	defer a.running.Done()
	f := &a.sess.inbox
	var bored <-chan time.Time
	if a.woken++; a.woken > homely {
		timer := time.NewTimer(attentive)
		defer timer.Stop()
		bored = timer.C
	}
	for f.attends(a) {
		b, found, err := a.sess.poll()
		switch {
		case found || err != nil:
			if !a.serve(b, err) || err != nil {
				f.dismiss(a)
			}
		case bored == nil:
			if f.rest(a) {
				return
			}
		default:
			select {
			case <-f.wake:
			case <-bored:
				a.woken, bored = 0, nil
			case <-a.ctx.Done():
			}
		}
	}
}

// signal says that there is news, to who waits for some and to who attends the
// session. The caller holds mu.
func (f *inbox) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
	if a := f.attendance; a != nil && !a.awake {
		a.awake = true
		a.running.Add(1)
		go a.run()
	}
}

// attends reports whether a is to be told of news.
func (f *inbox) attends(a *attendance) bool {
	if a.ctx.Err() != nil {
		f.dismiss(a)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attendance == a
}

// rest notes that a waits for no news. It reports false if there is some.
func (f *inbox) rest(a *attendance) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.wake:
		return false
	default:
		a.awake = false
		return true
	}
}

// dismiss notes that a is not to be told of news any more, and tells a so if it waits
// for some.
func (f *inbox) dismiss(a *attendance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.attendance == a {
		f.attendance = nil
		f.signal()
	}
}
