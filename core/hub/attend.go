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
	// running is the goroutine, while there is one; woken is how often there was, since
	// it last waited in vain, and belongs to it.
	running sync.WaitGroup
	woken   int
}

// Attend has serve called with what [Session.Next] would return, one after the other,
// in a goroutine that there is while there is news and for a while after: for sessions
// of which most are idle, since a goroutine that waits is most of what one costs. That
// ends when ctx does, when serve returns false or when it was given an error. Nobody
// may call Next beside it. The function that Attend returns is called once: it waits
// until serve has returned, and will not be called any more.
func (s *Session) Attend(ctx context.Context, serve func(Batch, error) bool) (leave func()) {
	a := &attendance{ctx: ctx, sess: s, serve: serve}
	s.feed.mu.Lock()
	s.feed.attendance = a
	if len(s.feed.wake) > 0 { // there may be news already
		s.feed.rouse()
	}
	s.feed.mu.Unlock()
	return func() {
		s.feed.dismiss()
		a.running.Wait()
	}
}

// run serves what is new. It returns when nothing is.
func (a *attendance) run() {
	defer a.running.Done()
	f := &a.sess.feed
	var bored <-chan time.Time
	if a.woken++; a.woken > homely {
		timer := time.NewTimer(attentive)
		defer timer.Stop()
		bored = timer.C
	}
	for a.ctx.Err() == nil {
		b, found, err := a.sess.poll()
		switch {
		case found || err != nil:
			if !a.serve(b, err) || err != nil {
				f.dismiss()
				return
			}
		case bored == nil:
			if f.rest() {
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
	f.dismiss()
}

// signal says that there is news.
func (f *feed) signal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	f.rouse()
}

// rouse has who attends the session see what there is. The caller holds mu.
func (f *feed) rouse() {
	if f.attendance != nil && !f.attended {
		f.attended = true
		f.attendance.running.Add(1)
		go f.attendance.run()
	}
}

// rest notes that nobody waits for news. It reports false if there is some.
func (f *feed) rest() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.wake:
		return false
	default:
		f.attended = false
		return true
	}
}

// dismiss notes that nobody is to be told of news any more.
func (f *feed) dismiss() {
	f.mu.Lock()
	f.attendance = nil
	f.mu.Unlock()
}
