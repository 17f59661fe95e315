package cluster

import (
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// told is what the engine knows of a hub. The engine is told the difference to what there is
// now, so that a slow one costs no memory.
type told struct {
	life journal.Life // zero if it is not up
	hub  Hub
	// leaving says that the engine is being told that it is gone.
	leaving bool
	// of was taken over by that life.
	of, by journal.Life
}

func (t *told) up() bool { return t.life != journal.Life{} }

// someAgents is how many agents the engine is told of before hubs are looked at again.
const someAgents = 256

// untold returns the calls of the engine that are due, some at a time. Callers make them all,
// in order, and without mu.
func (c *Cluster) untold() (calls []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.releases {
		calls = append(calls, func() { c.s.Callbacks.Release(r) })
	}
	c.releases = nil
	if c.isDeposed() && !c.toldDeposed {
		c.toldDeposed = true
		if by := c.deposed; c.s.Callbacks.Deposed != nil {
			calls = append(calls, func() { c.s.Callbacks.Deposed(by) })
		}
	}
	for _, r := range c.due {
		r.due = false
		calls = append(calls, c.untoldOf(r)...)
	}
	c.due = nil
	if calls = append(calls, c.untoldAgents()...); len(c.roster.news) > 0 {
		fifo.Signal(c.tell)
	}
	return calls
}

// untoldOf returns the calls that are due for a hub. Callers hold mu.
func (c *Cluster) untoldOf(r *record) (calls []func()) {
	to, t := &c.s.Callbacks, &r.told
	if life := t.life; t.up() && (life != r.life() || !r.present) {
		*t = told{of: t.of, by: t.by}
		t.leaving = true
		calls = append(calls, func() {
			give(to.HubGone, life)
			c.mu.Lock()
			t.leaving = false
			c.mu.Unlock()
			fifo.Signal(c.judge) // which may take it over now
		})
		c.forgetAgents(life)
	}
	if of, by := r.life(), r.by; r.over() && (t.of != of || t.by != by) {
		t.of, t.by = of, by
		calls = append(calls, func() { give2(to.TakenOver, of, by) })
	}
	if !r.present {
		return calls
	}
	switch h := r.hub(); {
	case !t.up():
		t.life, t.hub = r.life(), h
		calls = append(calls, func() { give(to.HubUp, h) })
		c.noteAgents(t.life)
	case h.State != t.hub.State || h.Address != t.hub.Address:
		t.hub = h
		calls = append(calls, func() { give(to.HubChanged, h) })
	}
	return calls
}

// forgetAgents notes that the agents of a life are gone with it. Callers hold mu.
func (c *Cluster) forgetAgents(l journal.Life) {
	for id, s := range c.roster.told {
		if s.life == l {
			delete(c.roster.told, id)
		}
	}
}

// noteAgents says that the engine has to be told of the agents of a life. Callers hold mu.
func (c *Cluster) noteAgents(l journal.Life) {
	for _, id := range slices.Sorted(maps.Keys(c.roster.agents)) {
		if c.roster.agents[id].life == l {
			c.noteAgent(id)
		}
	}
}

// untoldAgents returns the calls for some of the agents that have news. Callers hold mu.
func (c *Cluster) untoldAgents() (calls []func()) {
	to, ro := &c.s.Callbacks, &c.roster
	n := min(someAgents, len(ro.news))
	for _, id := range ro.news[:n] {
		delete(ro.due, id)
		was, is := ro.told[id], c.visible(id)
		if was != nil && (is == nil || is.life != was.life || is.Connection != was.Connection) {
			from := was.life
			calls = append(calls, func() { give2(to.AgentDown, from, id) })
			delete(ro.told, id)
			was = nil
		}
		if is == nil {
			continue
		}
		ro.told[id] = is
		switch {
		case was == nil:
			calls = append(calls, func() { give2(to.AgentUp, is.life, is.Entry) })
		case was != is:
			calls = append(calls, func() { give2(to.AgentChanged, is.life, is.Entry) })
		}
	}
	if ro.news = ro.news[n:]; len(ro.news) == 0 {
		ro.news = nil
	}
	return calls
}

func give[A any](to func(A), a A) {
	if to != nil {
		to(a)
	}
}

func give2[A, B any](to func(A, B), a A, b B) {
	if to != nil {
		to(a, b)
	}
}
