package hub

import (
	"context"
	"sync"
	"time"
)

const (
	// maxRestarts is how many times in a row the goroutine of a consumer ends as soon as
	// there is no news. After that it lingers: starting it again costs more than waking it,
	// since a new stack has to grow.
	maxRestarts = 4
	lingerTime  = 30 * time.Second
)

// consumer calls a function with the news of a session: see [Session.Consume].
type consumer struct {
	ctx       context.Context //nolint:containedctx // the lifetime of the consumer
	sess      *Session
	serve     func(Batch, error) bool
	goroutine sync.WaitGroup
	running   bool // whether there is a goroutine; inbox.mu guards it
	restarts  int  // of the goroutine, since it last lingered in vain; the goroutine's own
}

// Consume calls serve with what [Session.Next] would return, one batch at a time, in a
// goroutine that exists only while there is news and for a while after: for sessions that
// are mostly idle, where a waiting goroutine is most of the cost. It ends when ctx does,
// when serve returns false or once serve was passed an error. Nobody may call Next at the
// same time. The caller calls stop once, but not from serve: it waits until serve has
// returned and is not called any more. Then the session may be consumed again.
func (s *Session) Consume(ctx context.Context, serve func(Batch, error) bool) (stop func()) {
	c := &consumer{ctx: ctx, sess: s, serve: serve}
	f := &s.inbox
	f.mu.Lock()
	f.consumer = c
	f.signal() // there may be news already
	f.mu.Unlock()
	return func() {
		f.detach(c)
		c.goroutine.Wait()
	}
}

// run serves what is new, and returns when there is nothing.
func (c *consumer) run() {
	defer c.goroutine.Done()
	f := &c.sess.inbox
	var expired <-chan time.Time
	if c.restarts++; c.restarts > maxRestarts {
		timer := time.NewTimer(lingerTime)
		defer timer.Stop()
		expired = timer.C
	}
	for f.isConsumedBy(c) {
		b, found, err := c.sess.poll()
		switch {
		case found || err != nil:
			if !c.serve(b, err) || err != nil {
				f.detach(c)
			}
		case expired == nil:
			if f.rest(c) {
				return
			}
		default:
			select {
			case <-f.wake:
			case <-expired:
				c.restarts, expired = 0, nil
			case <-c.ctx.Done():
			}
		}
	}
}

// isConsumedBy reports whether c is still the consumer.
func (f *inbox) isConsumedBy(c *consumer) bool {
	if c.ctx.Err() != nil {
		f.detach(c)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.consumer == c
}

// rest notes that the goroutine of c ends. It reports false if there is news.
func (f *inbox) rest(c *consumer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.wake:
		return false
	default:
		c.running = false
		return true
	}
}

// detach removes the consumer, and wakes its goroutine if that waits.
func (f *inbox) detach(c *consumer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.consumer == c {
		f.consumer = nil
		f.signal()
	}
}
