package cluster

import (
	"context"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/timer"
)

const (
	// forgetTime is how long it may take to forget a hub: its server may have led the others.
	forgetTime = 15 * time.Second
	// forgetAgain is how long after an error it is tried again.
	forgetAgain = 250 * time.Millisecond
)

// Forget says that a hub is gone for good: it no longer counts for the majority, also after a restart
// of all hubs. It returns a conflict Fault if the hub is heard or its life was not taken over yet, an
// invalid one if it is not known, and a retryable one if the store of the claims cannot be reached. A
// hub that comes back counts again.
func (c *Cluster) Forget(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, forgetTime)
	defer cancel()
	of, err := c.forgettable(name)
	if err != nil {
		return err
	}
	epoch := strconv.FormatUint(of.Epoch, 10)
	for {
		if _, err = c.s.Claims.Claim(ctx, nameForgotten+name, epoch, func(string) bool { return true }); err == nil || timer.Sleep(ctx, forgetAgain) != nil {
			break
		}
	}
	if err != nil {
		f := core.NewFault(core.CodeUnreachable, "the cluster could not note that the hub %s is gone: try again", name).Because(err)
		f.Retryable = true
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.records[name]; r.life() == of && !r.forgotten {
		r.forgotten = true
		c.s.Log.Warn("a hub was forgotten", "hub", name)
		c.alter()
		c.urge()
	}
	return nil
}

// forgettable returns the life of a hub that may be forgotten, or why it may not.
func (c *Cluster) forgettable(name string) (journal.Life, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[name]
	switch {
	case name == c.self:
		return journal.Life{}, core.NewFault(core.CodeConflict, "the hub %s is this one, and runs: stop it, and ask another hub to forget it", name)
	case r == nil:
		return journal.Life{}, core.NewFault(core.CodeInvalid, "no hub %q is known: 'dragoman hubs' lists them", name)
	case !r.over():
		return journal.Life{}, core.NewFault(core.CodeConflict, "the hub %s is %s, and nobody has taken it over: stop it, if it runs; it can be forgotten once somebody has", name, r.state)
	}
	return r.life(), nil
}
