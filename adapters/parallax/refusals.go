package parallax

import (
	"context"
	"sync"
	"time"
)

// Refusals remember which agents of the gateway were refused, or sent away for a newer
// one, not long ago. Published agents do not take no for an answer: they come back for
// ever. Each time that they do, their answer is held up a little longer, up to
// half of the time for which they wait. It is safe for concurrent use; the zero value
// is ready.
type Refusals struct {
	mu   sync.Mutex
	seen map[string]turnedAway
}

type turnedAway struct {
	times int
	last  time.Time
}

// How long a refusal is remembered, of how many agents, and how long an answer is held
// up at most: published agents wait for it for 10 s, and who else has their id has up
// to 2 s to prove that it lives.
const (
	rememberRefusal = 5 * time.Minute
	mostRefusals    = 1024
	mostHoldUp      = 5 * time.Second
)

// add remembers that key was refused.
func (r *Refusals) add(key string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if _, again := r.seen[key]; !again && len(r.seen) >= mostRefusals {
		r.forget(now)
	}
	if r.seen == nil {
		r.seen = map[string]turnedAway{}
	}
	times := 1
	if was, again := r.seen[key]; again && now.Sub(was.last) < rememberRefusal {
		times = was.times + 1
	}
	r.seen[key] = turnedAway{times, now}
}

// forget makes room: of what is past, else of what was longest ago.
func (r *Refusals) forget(now time.Time) {
	oldest := ""
	for key, was := range r.seen {
		if now.Sub(was.last) >= rememberRefusal {
			delete(r.seen, key)
		} else if oldest == "" || was.last.Before(r.seen[oldest].last) {
			oldest = key
		}
	}
	if len(r.seen) >= mostRefusals {
		delete(r.seen, oldest)
	}
}

// delay is how long the answer to key is to be held up.
func (r *Refusals) delay(key string) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.seen[key]
	if time.Since(was.last) >= rememberRefusal {
		return 0
	}
	return min(time.Second<<min(was.times-1, 8), mostHoldUp)
}

// holdUp returns when key may be answered, or the cause for which ctx ended.
func (r *Refusals) holdUp(ctx context.Context, key string) error {
	delay := r.delay(key)
	if delay <= 0 {
		return nil
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
