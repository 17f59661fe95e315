package cluster

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// SetLoad tells the others how much an agent of this hub has to do. They learn it a moment
// later, together with other loads, and the last one of several alone.
func (c *Cluster) SetLoad(id core.AgentID, l Load) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.own[id]; a != nil && a.entry != nil {
		a.entry.Load = l
		c.oweLoad(id, a)
	}
}

// oweLoad queues an agent with another load than was told. Callers hold mu.
func (c *Cluster) oweLoad(id core.AgentID, a *ownAgent) {
	if !a.loadDue && a.entry.Load != a.load {
		a.loadDue = true
		c.dueLoads = append(c.dueLoads, id)
	}
}

// loadsAtOnce is how many loads are told at once, which takes some 16 KiB: the rest is told later.
const loadsAtOnce = 256

// nextLoads returns loads that were not told yet, if there are some.
func (c *Cluster) nextLoads() (l loads, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.dueLoads), loadsAtOnce)
	l.Loads = make(map[core.AgentID]Load, n)
	for _, id := range c.dueLoads[:n] {
		if a := c.own[id]; a != nil {
			if a.loadDue = false; a.entry != nil {
				a.load = a.entry.Load
				l.Loads[id] = a.load
			}
		}
	}
	c.dueLoads = slices.Delete(c.dueLoads, 0, n)
	return c.number(l), len(l.Loads) > 0
}

// nextPage returns the next page of all that was told, for those who have missed some of it.
func (c *Cluster) nextPage() (l loads, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var busy []core.AgentID
	for id, a := range c.own {
		if id > c.loadsTo && a.load != (Load{}) {
			busy = append(busy, id)
		}
	}
	l = loads{Whole: true, After: c.loadsTo, Loads: map[core.AgentID]Load{}}
	slices.Sort(busy)
	if len(busy) > loadsAtOnce {
		busy = busy[:loadsAtOnce]
		l.To = busy[loadsAtOnce-1]
	}
	for _, id := range busy {
		l.Loads[id] = c.own[id].load
	}
	c.loadsTo = l.To
	return c.number(l), len(c.own) > 0
}

func (c *Cluster) number(l loads) loads {
	c.loadsSeq++
	l.Seq = c.loadsSeq
	return l
}
