package parallax

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/lru"
)

// Refusals counts how often agents of the gateway were refused, or sent away for a newer
// one, within the last minutes. Published agents come back for ever after a refusal. Each
// time their answer is delayed a little longer, up to half of the time for which they
// wait. It is safe for concurrent use; the zero value is ready, and nil counts nothing.
type Refusals struct {
	mu    sync.Mutex
	times *lru.Cache[string, int] // nil before the first
}

// refusalAge is how long a refusal counts, maxRefused of how many agents, and maxDelay how
// long an answer is delayed at most: published agents wait for it for 10 s, and another
// agent with their id has up to 2 s to prove that it lives.
const (
	refusalAge = 5 * time.Minute
	maxRefused = 1024
	maxDelay   = 5 * time.Second
)

// add counts a refusal of key.
func (r *Refusals) add(key string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		r.times = lru.New(lru.Options[string, int]{Count: maxRefused, Age: refusalAge})
	}
	times, _ := r.times.Get(key)
	r.times.Put(key, times+1)
}

// delay is how long the answer to key is to be delayed.
func (r *Refusals) delay(key string) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		return 0
	}
	times, refused := r.times.Get(key)
	if !refused {
		return 0
	}
	return min(time.Second<<min(times-1, 8), maxDelay)
}

// wait returns when key may be answered, or the cause for which ctx ended.
func (r *Refusals) wait(ctx context.Context, key string) error { return pause(ctx, r.delay(key)) }

// pause returns after a time, or with the cause for which ctx ended before.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
