package cluster

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/timer"
)

const (
	// turnTime is how much later than the first the second hub tries to take a life over.
	turnTime = 200 * time.Millisecond
	// takeOverAgain is how long after an error it is tried again, at first and at most.
	takeOverAgain, takeOverAtMost = 250 * time.Millisecond, 2 * time.Second
)

// turn returns how many of the survivors are before this hub in taking a life over. The order
// is another one for each life, and the same at each hub; those that drain come last, since they end
// tasks that others can go on with. Callers hold mu.
func (c *Cluster) turn(of journal.Life) (before int) {
	own := weight(of, c.self)
	for _, r := range c.records {
		if !r.state.heard() {
			continue
		}
		if drains := r.state == Draining; drains != c.draining && !drains || drains == c.draining && weight(of, r.name) < own {
			before++
		}
	}
	return before
}

func weight(of journal.Life, hub string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(of.String() + "\x00" + hub))
	return h.Sum64()
}

// takeOver takes the life of a hub that is gone over, or learns who has. The store decides who
// wins: the turns only keep all hubs from trying at once.
func (c *Cluster) takeOver(ctx context.Context, r *record) {
	c.mu.Lock()
	of, wait := r.life(), time.Duration(c.turn(r.life()))*turnTime
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		r.taking = false
		c.mu.Unlock()
	}()
	again := takeOverAgain
	for timer.Sleep(ctx, wait) == nil && c.mayTakeOver(r, of) {
		err := c.s.Callbacks.TakeOver(ctx, of)
		var taken *journal.TakenError
		switch {
		case err == nil:
			c.settle(r, of, c.s.Life)
			return
		case errors.As(err, &taken):
			c.settle(r, of, taken.By)
		case ctx.Err() == nil:
			c.s.Log.Warn("a life could not be taken over yet", "life", of, "error", err)
		}
		wait, again = again, min(2*again, takeOverAtMost)
	}
}

// mayTakeOver reports whether a life still has to be taken over, and this hub may try.
func (c *Cluster) mayTakeOver(r *record, of journal.Life) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return r.life() == of && c.orphaned(r) && !c.stale() && !c.isDeposed()
}

// settle notes who has taken a life over.
func (c *Cluster) settle(r *record, of, by journal.Life) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.life() == of {
		c.s.Log.Info("a life was taken over", "life", of, "by", by)
		r.inherited = by == c.s.Life
		c.taken(r, by)
	}
}
