package parallax

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// Refusals counts the recent refusals of each agent of the gateway, including its
// replacements by a newer connection. Published agents reconnect after a refusal without
// end, so each answer is delayed longer than the last. It is safe for concurrent use; the
// zero value is ready, and nil counts nothing.
type Refusals struct {
	mu     sync.Mutex
	counts *lru.Cache[string, int] // nil before the first
}

// The bounds of Refusals. Published agents wait 10 s for an answer, of which another agent
// with their id may take 2 s to answer a ping.
const (
	refusalAge = 5 * time.Minute // how long a refusal counts
	maxRefused = 1024            // agents
	maxDelay   = 5 * time.Second
)

func (r *Refusals) add(key string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = lru.New(lru.Options[string, int]{Count: maxRefused, Age: refusalAge})
	}
	n, _ := r.counts.Get(key)
	r.counts.Put(key, n+1)
}

// delay returns how long the answer to key is delayed.
func (r *Refusals) delay(key string) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		return 0
	}
	n, refused := r.counts.Get(key)
	if !refused {
		return 0
	}
	return min(time.Second<<min(n-1, 8), maxDelay)
}

// wait returns when key may be answered, or the cause of ctx.
func (r *Refusals) wait(ctx context.Context, key string) error { return timer.Sleep(ctx, r.delay(key)) }
