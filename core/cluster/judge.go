package cluster

import (
	"maps"
	"slices"
	"time"
)

// stale reports whether this hub is cut off: it hears no majority of the known hubs, so what it
// believes of the others is old. Callers hold mu.
func (c *Cluster) stale(now time.Time) bool {
	return !c.alone() && c.support(now) < c.majority()
}

func (c *Cluster) quorum(now time.Time) bool {
	return c.alone() || !c.isDeposed() && c.formed && !c.stale(now)
}

// majority is how many hubs, this one included, have to hear each other. Callers hold mu.
func (c *Cluster) majority() int {
	if c.s.External {
		return 1
	}
	known := 1
	for _, r := range c.records {
		if !r.forgotten {
			known++
		}
	}
	return known/2 + 1
}

// support is how many hubs, this one included, hear each other with this one. Callers hold mu.
func (c *Cluster) support(now time.Time) int {
	n := 1
	if c.s.External && !c.fresh(c.echo, now) {
		n = 0 // it does not hear itself
	}
	for _, r := range c.records {
		if c.supports(r, now) {
			n++
		}
	}
	return n
}

// supports reports whether a hub and this one hear each other. Callers hold mu.
func (c *Cluster) supports(r *record, now time.Time) bool {
	return r.state.heard() && c.fresh(r.heardAt, now) && r.hears[c.self] == c.s.Life.Epoch
}

// fresh reports whether what was heard then counts now. Callers hold mu.
func (c *Cluster) fresh(heard, now time.Time) bool {
	return now.Sub(heard) < suspectAfter && heard.After(c.listening)
}

// judgement is what a look at all hubs leads to.
type judgement struct {
	ping, fetch []*record
	takeOver    []*record
}

// judgeAll looks which hubs are silent. Callers hold mu.
func (c *Cluster) judgeAll(now time.Time) (j judgement) {
	if c.stoodStill(now) {
		c.listening = now
		c.s.Log.Warn("this process stood still: it listens again before it judges other hubs", "life", c.s.Life)
	}
	c.judged = now
	if !c.formed && c.support(now) >= c.s.Formation {
		c.formed = true
		c.alter()
	}
	stale := c.stale(now)
	for _, name := range slices.Sorted(maps.Keys(c.records)) { // in an order that a simulation can repeat
		r := c.records[name]
		c.judgeOne(r, now, stale)
		c.inherit(r, now)
		c.judgeNext(r, stale, &j)
	}
	return j
}

// judgeNext notes what is to be done next about a hub. Callers hold mu.
func (c *Cluster) judgeNext(r *record, stale bool, j *judgement) {
	if (r.doubted || r.state == Suspect) && !r.pinging && !r.forgotten {
		r.doubted, r.pinging = false, true
		j.ping = append(j.ping, r)
	}
	if r.present() && !r.part.whole && !r.fetching {
		r.fetching = true
		j.fetch = append(j.fetch, r)
	}
	if c.orphaned(r) && !stale && !r.taking && c.s.Callbacks.TakeOver != nil {
		r.taking = true
		j.takeOver = append(j.takeOver, r)
	}
}

// stoodStill reports whether this process, or its clock, stood still since the last judgement.
// The two clocks differ when the machine was suspended. Callers hold mu.
func (c *Cluster) stoodStill(now time.Time) bool {
	return max(now.Sub(c.judged), now.Round(0).Sub(c.judged.Round(0))) > pausedAfter
}

// judgeOne judges a hub by its silence, and by what the others say of it. Callers hold mu.
func (c *Cluster) judgeOne(r *record, now time.Time, stale bool) {
	silence := r.silence(now, c.listening)
	if r.state.heard() && (silence >= suspectAfter || r.nobody > 0) {
		r.state = Suspect
		c.stateChanged(r)
	}
	if r.state != Suspect || stale || !r.silent(silence) || c.votes(r, now) < c.majority() {
		return
	}
	r.lose(now)
	c.s.Log.Warn("a hub is gone", "life", r.life(), "silent", silence.Round(time.Millisecond))
	c.stateChanged(r)
}

// silent reports whether the hub says nothing for so long that it is gone. A life of which nobody
// has heard anything yet is given the time of a start: it stands in the journal before its first
// beat.
func (r *record) silent(silence time.Duration) bool {
	if !r.begun {
		return silence >= startTime
	}
	return silence >= goneAfter || r.nobody >= 2
}

// votes returns how many hubs, this one included, do not hear the hub. Callers hold mu.
func (c *Cluster) votes(of *record, now time.Time) int {
	n := 1
	for _, r := range c.records {
		if r != of && c.supports(r, now) && r.hears[of.name] != of.epoch {
			n++
		}
	}
	return n
}

// left reports whether the hub has said that its life is over.
func (r *record) left() bool { return r.last != nil && r.last.Leaving }

// orphaned reports whether the tasks of a hub have no owner: its life is gone, and nobody has
// taken it over, or who has is over too, or is this hub and has not finished. Callers hold mu.
func (c *Cluster) orphaned(r *record) bool {
	return r.state == Gone && !r.told.up() && !r.told.leaving && (!r.over() || c.ended(r.by) || r.by == c.s.Life && !r.inherited)
}
