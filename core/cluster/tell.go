package cluster

import (
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// told is what the engine knows of a hub. The engine is told the difference to what there is
// now, so that a slow one costs no memory.
type told struct {
	life   journal.Life // zero if it is not up
	hub    Hub
	agents map[core.AgentID]*shown
	// leaving says that the engine is being told that it is gone.
	leaving bool
	// of was taken over by that life.
	of, by journal.Life
}

func (t *told) up() bool { return t.life != journal.Life{} }

// someAgents is how many agents of a hub the engine is told of before the next hub is looked at.
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
	if len(c.due) == 0 {
		return calls
	}
	r := c.due[0]
	c.due, r.due = c.due[1:], false
	calls = append(calls, c.untoldOf(r)...)
	if r.present() && len(r.part.news) > 0 {
		c.note(r)
	}
	if len(c.due) > 0 {
		fifo.Signal(c.tell)
	}
	return calls
}

// untoldOf returns the calls that are due for a hub. Callers hold mu.
func (c *Cluster) untoldOf(r *record) (calls []func()) {
	to, t := &c.s.Callbacks, &r.told
	if life, gone := t.life, t.agents; t.up() && (life != r.life() || !r.present()) {
		*t = told{of: t.of, by: t.by}
		t.leaving = true
		calls = append(calls, func() {
			give(to.HubGone, life)
			c.mu.Lock()
			t.leaving = false
			c.mu.Unlock()
			fifo.Signal(c.judge) // which may take it over now
		})
		for _, id := range slices.Sorted(maps.Keys(gone)) {
			calls = append(calls, c.elsewhere(id)...)
		}
	}
	if of, by := r.life(), r.by; r.over() && (t.of != of || t.by != by) {
		t.of, t.by = of, by
		calls = append(calls, func() { give2(to.TakenOver, of, by) })
	}
	if !r.present() {
		return calls
	}
	switch h := r.hub(); {
	case !t.up():
		t.life, t.hub, t.agents = r.life(), h, map[core.AgentID]*shown{}
		calls = append(calls, func() { give(to.HubUp, h) })
		for id := range r.part.agents {
			r.part.note(id)
		}
	case h.State != t.hub.State || h.Address != t.hub.Address:
		t.hub = h
		calls = append(calls, func() { give(to.HubChanged, h) })
	}
	return append(calls, c.untoldAgents(r)...)
}

// untoldAgents returns the calls for some of the agents of a hub that have news. Callers hold mu.
func (c *Cluster) untoldAgents(r *record) (calls []func()) {
	to, p, t, life := &c.s.Callbacks, r.part, &r.told, r.life()
	n := min(someAgents, len(p.news))
	for _, id := range p.news[:n] {
		delete(p.due, id)
		was, is := t.agents[id], p.agents[id]
		if was != nil && (is == nil || is.Connection != was.Connection) {
			calls = append(calls, func() { give2(to.AgentDown, life, id) })
			delete(t.agents, id)
			was = nil
		}
		if is == nil {
			calls = append(calls, c.elsewhere(id)...)
			continue
		}
		t.agents[id] = is
		switch {
		case was == nil:
			calls = append(calls, func() { give2(to.AgentUp, life, is.Entry) })
		case was != is:
			calls = append(calls, func() { give2(to.AgentChanged, life, is.Entry) })
		}
	}
	if p.news = p.news[n:]; len(p.news) == 0 {
		p.news = nil
	}
	return calls
}

// elsewhere returns the calls that tell the engine again of an agent that has left a hub and is at
// another one: an agent that moves may be told to be there before it is told to have left, and an id
// belongs to one agent. Callers hold mu.
func (c *Cluster) elsewhere(id core.AgentID) (calls []func()) {
	for _, name := range slices.Sorted(maps.Keys(c.records)) {
		t := &c.records[name].told
		if is := t.agents[id]; is != nil {
			life := t.life
			calls = append(calls, func() { give2(c.s.Callbacks.AgentChanged, life, is.Entry) })
		}
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
