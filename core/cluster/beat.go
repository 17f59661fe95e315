package cluster

import (
	"slices"
	"strings"
	"time"
)

// beat returns the next beat of this hub.
func (c *Cluster) beat(leaving bool) beat {
	c.mu.Lock()
	starting := c.starting
	c.mu.Unlock()
	tasks := 0
	if !starting {
		tasks = c.tasks() // there is no engine before
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq = max(c.seq+1, c.age())
	b := beat{
		form: of(kindBeat), Hub: c.self, Epoch: c.s.Life.Epoch, Index: c.s.Index, Seq: c.seq, Address: c.s.Address, Since: c.since,
		Draining: c.draining, Starting: starting, Leaving: leaving, Formed: c.formed, Agents: c.agents(), Tasks: tasks,
	}
	for _, r := range c.records {
		k := knownHub{Hub: r.name, Epoch: r.epoch, Index: r.index, Heard: r.state.heard(), Silent: r.state == Gone || r.missed, Seq: r.seq(), Forgotten: r.forgotten}
		if r.over() {
			by := r.by
			k.By = &by
		}
		b.Known = append(b.Known, k)
	}
	slices.SortFunc(b.Known, func(a, b knownHub) int { return strings.Compare(a.Hub, b.Hub) })
	return b
}

// answerPing answers who asks whether this hub is there.
func (c *Cluster) answerPing(_ []byte, reply func([]byte)) {
	if reply != nil {
		reply(encode(c.beat(false)))
	}
}

// publisher sends what this hub tells all others. It is used by one goroutine.
type publisher struct {
	c               *Cluster
	beatAt, loadsAt time.Time
}

// send sends what is due, and returns when something is due next.
func (p *publisher) send(now time.Time) (next time.Time) {
	c := p.c
	c.mu.Lock()
	urgent, silent := c.beatNow, c.isDeposed()
	c.beatNow = false
	c.mu.Unlock()
	if !now.Before(p.loadsAt) {
		p.loadsAt = now.Add(loadsEvery)
		p.sendLoads(c.nextLoads())
	}
	if urgent || !now.Before(p.beatAt) {
		p.beatAt = now.Add(beatEvery)
		if !silent {
			p.publish(c.beat(false))
			p.sendLoads(c.nextPage())
		}
	}
	if p.loadsAt.Before(p.beatAt) {
		return p.loadsAt
	}
	return p.beatAt
}

func (p *publisher) sendLoads(l loads, some bool) {
	if some {
		l.form, l.Hub, l.Epoch = of(kindLoads), p.c.self, p.c.s.Life.Epoch
		p.publish(l)
	}
}

// publish sends a message to all. One that cannot be sent is missed by the others, as one that
// is lost is.
func (p *publisher) publish(m any) {
	if err := p.c.s.Bus.Publish(subjectHubs, encode(m)); err != nil {
		p.c.s.Log.Debug("a message to the other hubs was not sent", "error", err)
	}
}
