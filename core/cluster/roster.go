package cluster

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// roster is what the store has of the agents of all hubs, as far as this one has read it. Its fields
// are guarded by Cluster.mu.
type roster struct {
	agents map[core.AgentID]*shown
	whole  bool // all was read once
	// told are the agents that the engine knows, by id, since an id has one entry.
	told map[core.AgentID]*shown
	// news are the agents that may have changed since, in order; due are those in it.
	news []core.AgentID
	due  map[core.AgentID]bool
}

func newRoster() roster {
	return roster{agents: map[core.AgentID]*shown{}, told: map[core.AgentID]*shown{}, due: map[core.AgentID]bool{}}
}

// watchAgain is how long after a fault the store is watched again.
const watchAgain = 100 * time.Millisecond

// watch reads the roster until ctx ends. After a fault it begins again with all of it.
func (c *Cluster) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.s.Claims.Watch(ctx, namePrefix, c.seeAll, c.see)
		if ctx.Err() == nil {
			c.s.Log.Debug("the roster is read again", "error", err)
			_ = timer.Sleep(ctx, watchAgain)
		}
	}
}

// seeAll takes all that the store has.
func (c *Cluster) seeAll(holders map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roster.whole = true
	for id := range c.roster.agents {
		if holders[claimName(id)] == "" {
			c.setAgent(id, nil)
		}
	}
	for name, text := range holders {
		c.seeOne(idOf(name), text)
	}
}

// see takes a change of the store.
func (c *Cluster) see(name, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seeOne(idOf(name), text)
}

// seeOne takes what the store has of an agent, "" for nothing. Callers hold mu.
func (c *Cluster) seeOne(id core.AgentID, text string) {
	if was := c.roster.agents[id]; was != nil && was.text == text {
		return
	}
	var s *shown
	if text != "" {
		var err error
		if s, err = readShown(text); err != nil {
			c.s.Log.Warn("an agent of another hub cannot be read", "agent", id, "error", err)
		}
	}
	c.setAgent(id, s)
}

// setAgent sets an agent, or removes it with nil. Callers hold mu.
func (c *Cluster) setAgent(id core.AgentID, s *shown) {
	if was := c.roster.agents[id]; was != nil && (s == nil || s.life != was.life) {
		if r := c.records[was.life.Hub]; r != nil {
			delete(r.loads, id)
		}
	}
	if s == nil {
		delete(c.roster.agents, id)
	} else {
		if r := c.records[s.life.Hub]; r != nil && r.life() == s.life {
			s.Load = r.loads[id]
		}
		c.roster.agents[id] = s
	}
	c.noteAgent(id)
}

// noteAgent says that the engine may have to be told of an agent. Callers hold mu.
func (c *Cluster) noteAgent(id core.AgentID) {
	if !c.roster.due[id] {
		c.roster.due[id] = true
		c.roster.news = append(c.roster.news, id)
	}
	fifo.Signal(c.tell)
}

// visible returns an agent if the engine knows, or may know, that its hub is up. Callers hold mu.
func (c *Cluster) visible(id core.AgentID) *shown {
	s := c.roster.agents[id]
	if s == nil {
		return nil
	}
	if r := c.records[s.life.Hub]; r == nil || !r.present || r.told.life != s.life {
		return nil
	}
	return s
}

// hearLoads takes loads of the agents of a hub.
func (c *Cluster) hearLoads(m *loads) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[m.Hub]
	if r == nil || r.epoch != m.Epoch || !r.present || m.Seq <= r.loadsSeq {
		return
	}
	r.loadsSeq = m.Seq
	if m.Whole {
		for id := range r.loads {
			if _, busy := m.Loads[id]; !busy && id > m.After && (m.To == "" || id <= m.To) {
				c.setLoad(r, id, Load{})
			}
		}
	}
	for id, l := range m.Loads {
		c.setLoad(r, id, l)
	}
}

// setLoad sets the load of an agent, which may not stand in the store yet. Callers hold mu.
func (c *Cluster) setLoad(r *record, id core.AgentID, l Load) {
	if l == (Load{}) {
		delete(r.loads, id)
	} else {
		r.loads[id] = l
	}
	if s := c.roster.agents[id]; s != nil && s.life == r.life() && s.Load != l {
		c.roster.agents[id] = s.withLoad(l)
		c.noteAgent(id)
	}
}

// sweepEvery is how often what the store has of this hub is compared with what it should have.
const sweepEvery = time.Second

// sweep removes the agents of lives that this hub has taken over, and what the store has of this hub
// though it should not: a write whose acknowledgement was lost. Callers hold mu.
func (c *Cluster) sweep() {
	for id, s := range c.roster.agents {
		switch r := c.records[s.life.Hub]; {
		case s.life == c.s.Life, s.life.Hub == c.self && s.life.Epoch < c.s.Life.Epoch:
		case r != nil && r.state == Gone && r.over() && r.life() == s.life && (r.by.Hub == c.self || c.hasEnded(r.by)):
		default:
			continue
		}
		if a := c.ownAgent(id); !a.busy && a.text != s.text {
			a.text = s.text
			c.save(id, a)
		}
	}
}
