package coretest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
)

// claimTime is how long a claim takes, stallTime how often one that waits is tried again.
const claimTime, stallTime = time.Millisecond, 20 * time.Millisecond

// Claims are claims in memory, as a store that all hubs of a [Network] run keeps them: a hub
// that does not reach a majority waits.
type Claims struct {
	net *Network

	mu      sync.Mutex
	holders map[string]string
	stalled bool
	// changes are the names that have changed, in order.
	changes []string
	changed chan struct{} // closed and replaced at each change
}

// NewClaims returns the claims of a network; with nil nobody ever waits.
func NewClaims(n *Network) *Claims {
	return &Claims{net: n, holders: map[string]string{}, changed: make(chan struct{})}
}

// set sets the holder of a name, or removes it with "". Callers hold mu.
func (c *Claims) set(name, value string) {
	if c.holders[name] = value; value == "" {
		delete(c.holders, name)
	}
	c.changes = append(c.changes, name)
	close(c.changed)
	c.changed = make(chan struct{})
}

// Stall makes everybody wait, as a store without a leader does, or no longer.
func (c *Claims) Stall(stalled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled = stalled
}

// Holders returns who has what.
func (c *Claims) Holders() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.holders)
}

// Of returns the claims as a hub uses them.
func (c *Claims) Of(hub string) cluster.Claims { return &claimsOf{c, hub} }

type claimsOf struct {
	*Claims
	hub string
}

// Claim implements [cluster.Claims].
func (c *claimsOf) Claim(ctx context.Context, name, value string, yields func(string) bool) (string, error) {
	for {
		if err := c.reach(ctx); err != nil {
			return "", err
		}
		c.mu.Lock()
		holder, held := c.holders[name]
		c.mu.Unlock()
		if held && holder != value && !yields(holder) {
			return holder, nil
		}
		c.mu.Lock()
		now, still := c.holders[name]
		swap := now == holder && still == held
		if swap {
			c.set(name, value)
		}
		c.mu.Unlock()
		if swap {
			return value, nil
		}
	}
}

// Holder implements [cluster.Claims].
func (c *claimsOf) Holder(ctx context.Context, name string) (string, error) {
	if err := c.reach(ctx); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holders[name], nil
}

// Release implements [cluster.Claims].
func (c *claimsOf) Release(ctx context.Context, name, value string) error {
	if err := c.reach(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holders[name] == value {
		c.set(name, "")
	}
	return nil
}

// Watch implements [cluster.Claims].
func (c *claimsOf) Watch(ctx context.Context, prefix string, all func(map[string]string), change func(name, holder string)) error {
	seen := -1
	for {
		if err := c.reach(ctx); err != nil {
			return err
		}
		c.mu.Lock()
		changed, next, now := c.changed, len(c.changes), map[string]string{}
		if seen < 0 {
			maps.Copy(now, c.holders)
		} else {
			for _, name := range c.changes[seen:] {
				now[name] = c.holders[name]
			}
		}
		c.mu.Unlock()
		maps.DeleteFunc(now, func(name, _ string) bool { return !strings.HasPrefix(name, prefix) })
		if seen < 0 {
			all(now)
		} else {
			for _, name := range slices.Sorted(maps.Keys(now)) {
				change(name, now[name])
			}
		}
		seen = next
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reach waits until the store works for the hub.
func (c *claimsOf) reach(ctx context.Context) error {
	for wait := claimTime; ; wait = stallTime {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
		c.mu.Lock()
		stalled := c.stalled
		c.mu.Unlock()
		if !stalled && (c.net == nil || c.net.Reaches(c.hub)) {
			return nil
		}
	}
}
