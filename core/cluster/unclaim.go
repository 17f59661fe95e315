package cluster

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// unclaimed is a claim to give back.
type unclaimed struct {
	id    core.AgentID
	claim string
	// before is whose the id is then; "" is nobody's.
	before string
	// running says that it is being given back; done is closed once it was.
	running, cancelled bool
	done               chan struct{}
}

// maxUnclaimed bounds the claims to give back. One that is not given back is disclaimed when
// somebody wants it, or free once this life is over.
const maxUnclaimed = 1 << 16

// Unclaim gives the id of an agent back, in the background. If the agent was not given to Put, and
// another connection of this hub had the id, it is that one's again.
func (c *Cluster) Unclaim(id core.AgentID, connection uint64, p core.Principal) {
	if !c.alone() {
		c.unclaim(id, claimText(holderOf(c.s.Life, connection, p), nil), c.joins.end(id, connection))
	}
}

func (c *Cluster) unclaim(id core.AgentID, claim, before string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveUp(id, claim, before)
}

// giveUpAgents gives the claims of a life back that this hub has taken over, once that is settled.
// Callers hold mu.
func (c *Cluster) giveUpAgents(of journal.Life, lost map[core.AgentID]*shown) {
	for id, a := range lost {
		c.giveUp(id, claimText(holderOf(of, a.Connection, a.Principal), nil), "")
	}
}

// giveUp queues a claim to give back. Callers hold mu.
func (c *Cluster) giveUp(id core.AgentID, claim, before string) {
	if len(c.unclaimed) >= maxUnclaimed || c.returning[claim] != nil {
		return
	}
	u := &unclaimed{id: id, claim: claim, before: before, done: make(chan struct{})}
	c.unclaimed = append(c.unclaimed, u)
	c.returning[claim] = u
	fifo.Signal(c.claims)
}

// reclaim keeps a claim from being given back, since it is about to be made again. It returns
// whose the id was before, and reports whether ctx has not ended.
func (c *Cluster) reclaim(ctx context.Context, claim string) (before string, ok bool) {
	c.mu.Lock()
	u := c.returning[claim]
	if u != nil && !u.running {
		u.cancelled = true
		delete(c.returning, claim)
		before, u = u.before, nil
	}
	c.mu.Unlock()
	if u == nil {
		return before, true
	}
	select {
	case <-u.done:
		return "", true
	case <-ctx.Done():
		return "", false
	}
}

// giveBack gives claims back until ctx ends.
func (c *Cluster) giveBack(ctx context.Context) {
	for {
		for u := c.nextUnclaimed(); u != nil && ctx.Err() == nil; u = c.nextUnclaimed() {
			if err := c.giveOneBack(ctx, u); err != nil && ctx.Err() == nil {
				c.s.Log.Debug("a claim was not given back", "agent", u.id, "error", err)
			}
			c.mu.Lock()
			delete(c.returning, u.claim)
			c.mu.Unlock()
			close(u.done)
		}
		select {
		case <-c.claims:
		case <-ctx.Done():
			return
		}
	}
}

// nextUnclaimed returns the next claim to give back, nil if there is none.
func (c *Cluster) nextUnclaimed() *unclaimed {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.unclaimed) > 0 {
		u := c.unclaimed[0]
		if c.unclaimed = c.unclaimed[1:]; !u.cancelled {
			u.running = true
			return u
		}
	}
	c.unclaimed = nil
	return nil
}

func (c *Cluster) giveOneBack(ctx context.Context, u *unclaimed) error {
	if u.before == "" {
		return c.s.Claims.Release(ctx, claimName(u.id), u.claim)
	}
	_, err := c.s.Claims.Claim(ctx, claimName(u.id), u.before, func(holder string) bool { return holder == u.claim })
	return err
}
