package cluster

import (
	"errors"

	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// hear takes a message that was sent to all hubs.
func (c *Cluster) hear(data []byte, _ func([]byte)) {
	kind, v, err := kindOf(data)
	if err != nil {
		c.refuse(v, err)
		return
	}
	switch kind {
	case kindBeat:
		var b beat
		if err := decodeMessage(v, &b); err != nil {
			c.refuse(v, err)
			return
		}
		c.hearBeat(&b)
	case kindLoads:
		var l loads
		if err := decodeMessage(v, &l); err != nil {
			c.refuse(v, err)
			return
		}
		c.hearLoads(&l)
	}
}

// refuse logs a message that cannot be read: once for each hub, since there may be very many.
func (c *Cluster) refuse(v strictjson.Value, err error) {
	name, _ := v.Get("hub").Text()
	if CheckName(name) != nil {
		name = "?"
	}
	c.mu.Lock()
	logged := c.refused[name] || len(c.refused) > MaxIndex
	c.refused[name] = true
	c.mu.Unlock()
	switch {
	case logged:
	case errors.Is(err, errMajor):
		c.s.Log.Error("a hub of a later version is not part of this cluster for this hub", "hub", name, "error", err)
	default:
		c.s.Log.Warn("a message of a hub was ignored; further ones are not logged", "hub", name, "error", err)
	}
}

// hearBeat takes a beat.
func (c *Cluster) hearBeat(b *beat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.Hub == c.self {
		c.hearSelf(b)
		return
	}
	r := c.records[b.Hub]
	if r != nil && (b.Epoch < r.epoch || b.Epoch == r.epoch && r.last != nil && b.Seq <= r.last.Seq) {
		return // an old life, or a beat that was overtaken
	}
	r = c.record(b.Hub, b.Epoch, b.Index)
	delete(c.refused, b.Hub)
	misses, echo := c.learnAll(b.Known)
	r.last, r.begun = b, true
	if r.over() {
		return // it does not know yet that it was deposed
	}
	r.misses, r.echo = misses, echo
	r.listen(c.ran)
	c.formed = c.formed || b.Formed
	c.doubtWith(r)
	before := r.state
	if r.state = b.state(); r.state == Gone {
		r.lose()
	}
	if !r.present && r.state != Gone && r.state != Starting {
		r.present = true
		c.note(r)
	}
	if r.state != before {
		c.stateChanged(r)
	}
}

// state returns the state that a hub says it is in.
func (b *beat) state() State {
	switch {
	case b.Leaving:
		return Gone
	case b.Starting:
		return Starting
	case b.Draining:
		return Draining
	default:
		return Up
	}
}

// learnAll learns what another hub knows. It returns the epochs of those that are silent for it, and the
// latest beat of this hub that it has heard. Callers hold mu.
func (c *Cluster) learnAll(known []knownHub) (misses map[string]uint64, echo uint64) {
	misses = map[string]uint64{}
	for _, k := range known {
		if k.Silent {
			misses[k.Hub] = k.Epoch
		}
		if k.Hub == c.self && k.Epoch == c.s.Life.Epoch {
			echo = k.Seq
		}
		c.learn(k)
	}
	return misses, echo
}

// hearSelf takes a beat of this hub, or of one that has its name. Callers hold mu.
func (c *Cluster) hearSelf(b *beat) {
	switch {
	case b.Epoch > c.s.Life.Epoch:
		c.depose(journal.Life{Hub: b.Hub, Epoch: b.Epoch})
	case b.Epoch == c.s.Life.Epoch:
		c.echo = b.Seq
	}
}

// doubtWith looks after the hubs that another one no longer hears. Callers hold mu.
func (c *Cluster) doubtWith(r *record) {
	for _, k := range r.last.Known {
		other := c.records[k.Hub]
		if other != nil && !k.Heard && k.Epoch == other.epoch && c.ran-other.heard > pingEvery {
			c.doubt(other)
		}
	}
}

// learn takes what another hub says of a hub. Callers hold mu.
func (c *Cluster) learn(k knownHub) {
	if k.Hub == c.self {
		switch own := c.s.Life; {
		case k.Epoch > own.Epoch:
			c.depose(journal.Life{Hub: k.Hub, Epoch: k.Epoch})
		case k.Epoch == own.Epoch && k.By != nil:
			c.depose(*k.By)
		}
		return
	}
	r := c.record(k.Hub, k.Epoch, k.Index)
	if k.Epoch < r.epoch {
		return
	}
	r.begun = r.begun || k.Heard
	if k.By != nil {
		c.taken(r, *k.By)
	}
	if k.Forgotten && !r.forgotten {
		r.forgotten = true
		c.alter()
	}
}

// taken notes who has taken the life of a record over. Callers hold mu.
func (c *Cluster) taken(r *record, by journal.Life) {
	switch {
	case by == r.by:
		return
	case by.Hub == r.name: // the hub itself, in its next life
		c.record(r.name, by.Epoch, r.index)
		return
	case r.over() && (!c.hasEnded(r.by) || c.hasEnded(by) && by.String() < r.by.String()):
		return // an heir is replaced when it has died itself
	}
	r.by = by
	r.lose()
	c.stateChanged(r)
}

// hasEnded reports whether a life is known to be over for good: it was taken over, or its hub has
// a later one. Callers hold mu.
func (c *Cluster) hasEnded(l journal.Life) bool {
	if l.Hub == c.self {
		return l.Epoch < c.s.Life.Epoch || l == c.s.Life && c.isDeposed()
	}
	r := c.records[l.Hub]
	return r != nil && (l.Epoch < r.epoch || l.Epoch == r.epoch && r.over())
}

func (c *Cluster) isDeposed() bool { return c.deposed != journal.Life{} }

// depose notes that the own life was taken over. Callers hold mu.
func (c *Cluster) depose(by journal.Life) {
	if c.isDeposed() {
		return
	}
	c.deposed = by
	c.s.Log.Warn("the life of this hub was taken over", "life", c.s.Life, "by", by)
	c.alter()
	fifo.Signal(c.tell)
}

// stateChanged tells everybody of a new state of a hub. Callers hold mu.
func (c *Cluster) stateChanged(r *record) {
	c.alter()
	c.note(r)
	c.urge()
}

// note makes the engine learn the news of a hub. Callers hold mu.
func (c *Cluster) note(r *record) {
	if !r.due {
		r.due = true
		c.due = append(c.due, r)
	}
	fifo.Signal(c.tell)
}
