package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// claimAgain is how long after a fault a claim is tried again.
const claimAgain = 100 * time.Millisecond

func claimName(id core.AgentID) string { return "agent." + string(id) }

func holderOf(l journal.Life, connection uint64, p core.Principal) holder {
	return holder{l.Hub, l.Epoch, connection, core.Principal{ID: p.ID, Authenticated: p.Authenticated}}
}

// claimText returns the claim of a holder as the store has it.
func claimText(h holder, former []holder) string {
	return string(encode(claim{of(kindClaim), h, former}))
}

// Claim makes the id of an agent that of a connection of this hub, in the whole cluster. Another
// hub that has the id gives it up if its engine says so (see [Release]), and has to if both
// connections are of the same authenticated principal. The id of a life that is over is free.
// Connections of this hub are not compared: the last claim counts.
//
// Claim returns nil once the id is claimed and no other hub has the agent; then the agent has to
// be given to Put, or the id back to Unclaim. It returns a conflict Fault if somebody else keeps
// the id or takes it in the meantime, and when ctx ends an unreachable Fault: the store or the
// other hub cannot say.
func (c *Cluster) Claim(ctx context.Context, id core.AgentID, connection uint64, p core.Principal) error {
	if c.alone() {
		return nil
	}
	a := attempt{c: c, id: id, own: holderOf(c.s.Life, connection, p), left: map[holder]bool{}}
	if !c.joins.begin(ctx, id, connection) {
		return a.late(ctx, errors.New("another connection is joining"))
	}
	err := a.run(ctx)
	if err == nil && !c.joins.claimed(id, connection, a.before) {
		err = a.lost()
	}
	if err != nil {
		c.joins.end(id, connection)
		if a.text != "" && len(a.former) == 0 { // else the claim says who has the agent
			c.unclaim(id, a.text, a.before)
		}
	}
	return err
}

// attempt is a claim that is being made.
type attempt struct {
	c   *Cluster
	id  core.AgentID
	own holder
	// text is the claim once it was made; former are those who may have the agent still.
	text   string
	former []holder
	// before is the claim of another connection of this hub that was replaced.
	before string
	// left are the holders that said that they do not have the agent.
	left map[holder]bool
}

func (a *attempt) lost() error {
	return core.NewFault(core.CodeConflict, "a newer connection took the place of agent %s", a.id)
}

func (a *attempt) late(ctx context.Context, why error) error {
	return core.NewFault(core.CodeUnreachable, "the id %s could not be claimed in the cluster in time: try again", a.id).Because(errors.Join(context.Cause(ctx), why))
}

// run tries until the claim is made or refused, or ctx ends.
func (a *attempt) run(ctx context.Context) error {
	var ok bool
	if a.before, ok = a.c.reclaim(ctx, claimText(a.own, nil)); !ok {
		return a.late(ctx, errors.New("it is being given back"))
	}
	for {
		changed, over := a.c.changes()
		if over {
			return errOver
		}
		err := a.try(ctx)
		if _, final := errors.AsType[*core.Fault](err); err == nil || final {
			return err
		}
		a.c.s.Log.Debug("the id of an agent could not be claimed yet", "agent", a.id, "error", err)
		again := time.NewTimer(claimAgain)
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return a.late(ctx, err)
		}
		again.Stop()
	}
}

// errOver reports that the life of this hub is over.
var errOver = core.NewFault(core.CodeUnreachable, "the hub is no longer part of the cluster: try again")

// changes returns a channel that is closed when the state of a hub has changed, and whether the
// life of this one is over.
func (c *Cluster) changes() (changed <-chan struct{}, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed, c.left || c.isDeposed()
}

// try tries once. After an error that is no Fault it has to be tried again.
func (a *attempt) try(ctx context.Context) error {
	if a.text == "" {
		if err := a.take(ctx); err != nil {
			return err
		}
	}
	for len(a.former) > 0 {
		if a.c.joins.isLost(a.id, a.own.Connection) {
			return a.lost()
		}
		if left, err := a.hasLeft(ctx, a.former[0]); err != nil {
			return err
		} else if !left {
			return fmt.Errorf("the hub %s has the agent %s still", a.former[0].Hub, a.id)
		}
		a.former = a.former[1:]
	}
	return a.confirm(ctx)
}

// take makes the claim.
func (a *attempt) take(ctx context.Context) error {
	var from string // whom to take it from
	var former []holder
	for {
		text := claimText(a.own, former)
		got, err := a.c.s.Claims.Claim(ctx, claimName(a.id), text, func(holder string) bool { return holder == from })
		if err != nil {
			return fmt.Errorf("claiming the agent %s: %w", a.id, err)
		}
		if got == text {
			a.text, a.former = text, former
			return nil
		}
		if former, err = a.judge(ctx, got); err != nil {
			return err
		}
		if from, a.before = got, ""; a.isOwn(got) {
			a.before = got
		}
	}
}

// judge returns a conflict Fault if a holder keeps the id, and else who may have the agent still
// once the id is taken.
func (a *attempt) judge(ctx context.Context, text string) (former []holder, err error) {
	c, err := read[claim]([]byte(text), kindClaim)
	if err != nil {
		return nil, core.NewFault(core.CodeConflict, "the id %s belongs to somebody else: choose another id", a.id).Because(err)
	}
	for _, h := range append([]holder{c.holder}, c.Former...) {
		switch {
		case h.Hub == a.own.Hub && h.Epoch > a.own.Epoch:
			a.c.succeeded(h.life())
			return nil, errOver
		case a.isGone(h):
		case a.c.Ended(h.life()):
			return nil, fmt.Errorf("that the life %s is over is not known to a majority yet", h.life())
		case a.mustLeave(h):
			former = append(former, h)
		default:
			if left, err := a.hasLeft(ctx, h); err != nil {
				return nil, err
			} else if !left {
				return nil, core.NewFault(core.CodeConflict, "the id %s belongs to somebody else, who is connected to the hub %s: choose another id, or wait until it has left", a.id, h.Hub)
			}
		}
	}
	return former, nil
}

// isOwn reports whether the claim is that of another connection of this life.
func (a *attempt) isOwn(text string) bool {
	c, err := read[claim]([]byte(text), kindClaim)
	return err == nil && c.life() == a.own.life()
}

// isGone reports whether a holder certainly does not have the agent, or is of this hub.
func (a *attempt) isGone(h holder) bool {
	return h.Hub == a.own.Hub && h.Epoch <= a.own.Epoch || a.left[h] || a.c.settled(h.life())
}

// mustLeave reports whether a holder has to give the agent up.
func (a *attempt) mustLeave(h holder) bool {
	own := a.own.Principal
	return own.Authenticated && h.Principal.Authenticated && own.ID == h.Principal.ID
}

// hasLeft reports whether a holder does not have the agent any more. It asks it to give the agent
// up.
func (a *attempt) hasLeft(ctx context.Context, h holder) (bool, error) {
	if a.isGone(h) {
		return true, nil
	}
	left, err := a.c.askRelease(ctx, h, a.id, a.own.Principal, a.mustLeave(h))
	if left {
		a.left[h] = true
	}
	return left, err
}

// confirm takes those who have left out of the claim.
func (a *attempt) confirm(ctx context.Context) error {
	text := claimText(a.own, nil)
	if a.text == text {
		return nil
	}
	got, err := a.c.s.Claims.Claim(ctx, claimName(a.id), text, func(holder string) bool { return holder == a.text })
	switch {
	case err != nil:
		return fmt.Errorf("confirming the claim of the agent %s: %w", a.id, err)
	case got != text:
		return a.lost()
	}
	a.text = text
	return nil
}
