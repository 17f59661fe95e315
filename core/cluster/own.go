package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// ownAgent is an id that this hub has or wants: what the store should have of it, and what it has.
// Cluster.mu guards it.
type ownAgent struct {
	// claims are those of the connections that have the id, or want it, by connection.
	claims map[uint64]*claim
	// entry is the agent, nil while it is joining; put is its text.
	entry *Entry
	put   string
	// text is what the store has as far as this hub knows. The connections have the id if it is held. Once
	// none has it, another hub may take it: for the next one it has to be written again.
	text        string
	held, again bool
	// busy says that a goroutine makes the store have what it should.
	busy bool

	load    Load // as it was told last
	loadDue bool
}

// claim is that of a connection. It is told nil once it has the id, or why it does not get it.
type claim struct {
	entry Entry
	text  string
	told  chan error
}

// claimOf returns the claim of the connection of an agent, or why it cannot be stored.
func (c *Cluster) claimOf(e Entry) (*claim, error) {
	text, err := textOf(c.s.Life, &e)
	return &claim{e, text, make(chan error, 1)}, err
}

// ownAgent returns an id of this hub. Callers hold mu.
func (c *Cluster) ownAgent(id core.AgentID) *ownAgent {
	a := c.own[id]
	if a == nil {
		a = &ownAgent{claims: map[uint64]*claim{}}
		c.own[id] = a
	}
	return a
}

// want returns what the store should have of the agent, "" for nothing, and the principal of the connection that
// claims the id by that.
func (a *ownAgent) want() (string, core.Principal) {
	switch {
	case a.put != "":
		return a.put, a.entry.Principal
	case len(a.claims) == 0:
		return "", core.Principal{}
	}
	last := a.claims[slices.Max(slices.Collect(maps.Keys(a.claims)))]
	return last.text, last.entry.Principal
}

// isOf reports whether a claim is decided by what another hub says to one of a principal.
func (of *claim) isOf(p core.Principal) bool {
	return of.entry.Principal.ID == p.ID && of.entry.Principal.Authenticated == p.Authenticated
}

// isJoining reports whether a connection has the id, or wants it, and is not the agent.
func (a *ownAgent) isJoining() bool { return len(a.claims) > 1 || len(a.claims) == 1 && a.entry == nil }

// drop takes the id from a connection.
func (a *ownAgent) drop(connection uint64) {
	delete(a.claims, connection)
	a.held = a.held && len(a.claims) > 0
	if a.entry != nil && a.entry.Connection == connection {
		a.entry, a.put = nil, ""
	}
}

// Put tells the others of an agent of this hub, whose id was claimed: a new one, or one that has
// changed. The store learns it in the background. Connections with lower numbers have the id no more.
func (c *Cluster) Put(e Entry) {
	if c.alone() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.ownAgent(e.Card.ID)
	if was := a.claims[e.Connection]; was != nil && a.entry == nil {
		e.Since = was.entry.Since // so that an agent that joins is written once
	}
	of, err := c.claimOf(e)
	if err != nil {
		c.s.Log.Error("an agent cannot be told to the other hubs", "error", err)
		return
	}
	for n, before := range a.claims {
		if n < e.Connection {
			before.tell(nil)
			delete(a.claims, n)
		}
	}
	a.claims[e.Connection], a.entry, a.put = of, &e, of.text
	c.oweLoad(e.Card.ID, a)
	c.save(e.Card.ID, a)
}

// Unclaim takes the id of an agent from a connection, which has left or has not joined, and tells the
// others in the background. The id is free once no connection of this hub has it.
func (c *Cluster) Unclaim(id core.AgentID, connection uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.own[id]; a != nil {
		a.drop(connection)
		c.save(id, a)
	}
}

// yield takes an id from a connection that has left, and from those before it. It reports whether no
// later one has it: another hub may take it then.
func (c *Cluster) yield(id core.AgentID, connection uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.own[id]
	if a == nil {
		return true
	}
	for n := range a.claims {
		if n <= connection {
			a.drop(n)
		}
	}
	c.save(id, a)
	return len(a.claims) == 0
}

// save makes the store have what it should of an id, in the background. Callers hold mu.
func (c *Cluster) save(id core.AgentID, a *ownAgent) {
	if !a.busy && c.working != nil && !c.left {
		a.busy = true
		c.saving.Go(func() { c.saveAll(id, a) })
	}
}

// saveAll makes the store have what it should of an id, and tells the connections that claim it.
func (c *Cluster) saveAll(id core.AgentID, a *ownAgent) {
	for {
		c.mu.Lock()
		to, p := a.want()
		from, changed := a.text, c.changed
		over := c.working.Err() != nil || c.isDeposed()
		done := over || to == from && !a.again
		if done {
			if a.busy = false; to == "" && from == "" {
				delete(c.own, id)
			}
		}
		for _, of := range a.claims {
			if over {
				of.tell(errOver)
			}
		}
		a.again = false
		c.mu.Unlock()
		if done {
			return
		}
		if err := c.write(id, a, from, to, p); err != nil {
			c.s.Log.Debug("the store does not have an agent as it is yet", "agent", id, "error", err)
			again := time.NewTimer(writeAgain)
			select {
			case <-changed:
			case <-again.C:
			case <-c.working.Done():
			}
			again.Stop()
		}
	}
}

const (
	// writers is how many agents are written at once.
	writers = 64
	// writeAgain is how long after a fault an agent is written again.
	writeAgain = 100 * time.Millisecond
)

// write writes an id once. After an error it has to be done again.
func (c *Cluster) write(id core.AgentID, a *ownAgent, from, to string, p core.Principal) error {
	c.writing <- struct{}{}
	holder, err := to, error(nil)
	if to == "" {
		err = c.s.Claims.Release(c.working, claimName(id), from)
	} else {
		holder, err = c.s.Claims.Claim(c.working, claimName(id), to, func(h string) bool { return h == from || c.isOwn(h) })
	}
	<-c.writing
	if err == nil && holder != to {
		if err = c.vacate(c.working, id, p, holder); err == nil {
			c.has(id, a, holder, false)
			return nil
		}
	}
	if err == nil {
		c.has(id, a, to, true)
		return nil
	}
	if _, final := errors.AsType[*core.Fault](err); final {
		c.lost(id, a, p, err)
		return nil
	}
	return err
}

// has notes what the store has of an id. If this hub got it, its connections are told.
func (c *Cluster) has(id core.AgentID, a *ownAgent, text string, got bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.text, a.held = text, got && !a.again && len(a.claims) > 0
	for _, of := range a.claims {
		if a.held {
			of.tell(nil)
		}
	}
}

// lost tells the connections of a principal that another hub keeps the id. It may give it up to those of others.
func (c *Cluster) lost(id core.AgentID, a *ownAgent, p core.Principal, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.text = ""
	for n, of := range a.claims {
		if !of.isOf(p) {
			continue
		}
		of.tell(why)
		if a.entry != nil && a.entry.Connection == n {
			c.s.Log.Warn("an agent has come to another hub, which does not know this life any more", "agent", id)
		}
		a.drop(n)
	}
}

func (of *claim) tell(err error) {
	select {
	case of.told <- err:
	default: // it was told
	}
}

// isOwn reports whether the store has an agent of this life.
func (c *Cluster) isOwn(text string) bool {
	s, err := readShown(text)
	return err == nil && s.life == c.s.Life
}

// errOver reports that the life of this hub is over.
var errOver = core.NewFault(core.CodeUnreachable, "the hub is no longer part of the cluster: try again")

// vacate returns nil once the holder of an id does not have the agent any more, and a Fault if it keeps
// it. After another error it has to be tried again.
func (c *Cluster) vacate(ctx context.Context, id core.AgentID, p core.Principal, holder string) error {
	s, err := readShown(holder)
	if err != nil {
		return core.NewFault(core.CodeConflict, "the id %s belongs to somebody else: choose another id", id).Because(err)
	}
	c.mu.Lock()
	if s.life.Hub == c.self && s.life.Epoch > c.s.Life.Epoch {
		c.depose(s.life)
	}
	over, ended := c.isDeposed(), c.hasEnded(s.life)
	c.mu.Unlock()
	if over || ended {
		if over {
			return errOver
		}
		return nil
	}
	must := p.Authenticated && s.Principal.Authenticated && p.ID == s.Principal.ID
	switch left, err := c.askRelease(ctx, s, id, p, must); {
	case err != nil:
		return err
	case left:
		return nil
	case must:
		return fmt.Errorf("the hub %s has the agent %s still", s.life.Hub, id)
	}
	return core.NewFault(core.CodeConflict, "the id %s belongs to somebody else, who is connected to the hub %s: choose another id, or wait until it has left", id, s.life.Hub)
}

// Claim makes the id of an agent that of its connection to this hub, in the whole cluster, and tells the
// others of the agent. Another hub that has the id gives it up if its engine says so (see [Release]), and has to if both
// connections are of the same authenticated principal. The id of a life that is over is free.
// Connections of this hub are not compared: all that have claimed the id have it.
//
// Claim returns nil once the id is claimed and no other hub has the agent; then the agent has to
// be given to Put, or the id back to Unclaim. It returns a too_large Fault for an agent over
// [MaxEntryBytes], a conflict Fault if another connection keeps
// the id, and when ctx ends an unreachable Fault: the store or the other hub cannot say.
func (c *Cluster) Claim(ctx context.Context, e Entry) error {
	if c.alone() {
		return nil
	}
	id := e.Card.ID
	of, err := c.claimOf(e)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.left || c.isDeposed() {
		c.mu.Unlock()
		return errOver
	}
	a := c.ownAgent(id)
	if a.claims[e.Connection] = of; a.held {
		of.tell(nil)
	} else {
		a.again = true
	}
	c.save(id, a)
	c.mu.Unlock()
	select {
	case err := <-of.told:
		return err
	case <-ctx.Done():
	}
	c.Unclaim(id, e.Connection)
	return core.NewFault(core.CodeUnreachable, "the id %s could not be claimed in the cluster in time: try again", id).Because(context.Cause(ctx))
}
