package cluster

import (
	"context"
	"maps"
	"slices"
	"time"
)

// stale reports whether this hub is cut off: it hears no majority of the known hubs, so what it
// believes of the others is old. Callers hold mu.
func (c *Cluster) stale() bool { return !c.alone() && c.support() < c.majority() }

func (c *Cluster) quorum() bool { return c.alone() || !c.isDeposed() && c.formed && !c.stale() }

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

// support is how many hubs, this one included, have lately heard this one. Callers hold mu.
func (c *Cluster) support() int {
	n := 1
	if c.s.External && !c.fresh(c.echo) {
		n = 0 // it does not hear itself
	}
	for _, r := range c.records {
		if c.supports(r) {
			n++
		}
	}
	return n
}

// supports reports whether a hub has said that it has lately heard this one. What was said before
// this process stood still for long counts for nothing, also if it arrives later: it names an old
// beat. Callers hold mu.
func (c *Cluster) supports(r *record) bool {
	return r.state != Gone && r.nobody == 0 && c.fresh(r.echo)
}

// fresh reports whether a beat of this hub is so young that no hub that heard it can have given this
// one up for its silence. Callers hold mu.
func (c *Cluster) fresh(seq uint64) bool {
	return seq > 0 && c.age() < seq+uint64(quorumFor.Microseconds())
}

// age returns the age of this life in microseconds, with the time in which the machine was suspended.
// Callers hold mu.
func (c *Cluster) age() uint64 { return uint64((time.Since(c.since) + c.asleep).Microseconds()) }

// ranAtMost bounds what counts as silence of others from one look at them to the next: if more time
// has passed, this process did not run.
const ranAtMost = 4 * judgeEvery

// judgement is what a look at all hubs leads to.
type judgement struct {
	ping, takeOver []*record
	silent         []func() // calls of Callbacks.Silent
}

// judgeAll looks which hubs are silent. Callers hold mu.
func (c *Cluster) judgeAll(now time.Time) (j judgement) {
	gap := now.Sub(c.judged)
	if suspended := now.Round(0).Sub(c.judged.Round(0)) - gap; suspended > time.Second { // by the other clock
		c.asleep += suspended
	}
	c.judged = now
	c.ran += min(gap, ranAtMost)
	if !c.formed && c.support() >= c.s.Formation {
		c.formed = true
		c.alter()
	}
	stale := c.stale()
	for _, name := range slices.Sorted(maps.Keys(c.records)) { // in an order that a simulation can repeat
		r := c.records[name]
		c.judgeOne(r, stale)
		c.judgeNext(r, stale, &j)
	}
	if now.Sub(c.swept) >= sweepEvery {
		c.swept = now
		c.sweep()
	}
	return j
}

// judgeNext notes what is to be done next about a hub. Callers hold mu.
func (c *Cluster) judgeNext(r *record, stale bool, j *judgement) {
	if (r.doubted || r.state == Suspect) && !r.pinging && !r.forgotten {
		r.doubted, r.pinging = false, true
		j.ping = append(j.ping, r)
	}
	if r.state == Suspect && r.begun && !stale && r.replaced == nil && c.ran-r.heard >= replaceAfter && c.s.Callbacks.Silent != nil {
		ctx, cancel := context.WithCancel(c.working)
		r.replaced = cancel
		j.silent = append(j.silent, func() { c.s.Callbacks.Silent(ctx, r.name) })
	}
	if c.orphaned(r) && !stale && !r.taking && c.s.Callbacks.TakeOver != nil {
		r.taking = true
		j.takeOver = append(j.takeOver, r)
	}
}

// judgeOne judges a hub by its silence, and by what the others say of it. Callers hold mu.
func (c *Cluster) judgeOne(r *record, stale bool) {
	silence := c.ran - r.heard
	if r.state.heard() && (silence >= suspectAfter || r.nobody > 0) {
		r.state = Suspect
		c.stateChanged(r)
	}
	missed := r.missed
	if r.missed = r.state == Suspect && c.silent(r); !r.missed || stale {
		return
	}
	if !missed {
		c.urge()
	}
	if c.agreed(r) {
		r.lose()
		c.s.Log.Warn("a hub is gone", "life", r.life(), "silent", silence.Round(time.Millisecond))
		c.stateChanged(r)
	}
}

// silent reports whether a hub says nothing for so long that it may be gone, or whether its process
// is. A life of which no hub has heard anything yet is given the time of a start: it stands in the
// journal before its first beat. Callers hold mu.
func (c *Cluster) silent(r *record) bool {
	silence := c.ran - r.heard
	if !r.begun {
		return silence >= startTime
	}
	return silence >= goneAfter || r.nobody >= 2
}

// agreed reports whether the hub is silent for another one, too, of those that support this one. Where
// there is none, the own opinion is enough: the store has the last word. Callers hold mu.
func (c *Cluster) agreed(of *record) bool {
	alone := true
	for _, r := range c.records {
		if r != of && c.supports(r) {
			if r.misses[of.name] == of.epoch {
				return true
			}
			alone = false
		}
	}
	return alone
}

// left reports whether the hub has said that its life is over.
func (r *record) left() bool { return r.last != nil && r.last.Leaving }

// orphaned reports whether the tasks of a hub have no owner: its life is gone, and nobody has
// taken it over, or who has is over too, or is this hub and has not finished. Callers hold mu.
func (c *Cluster) orphaned(r *record) bool {
	return r.state == Gone && !r.told.up() && !r.told.leaving && (!r.over() || c.hasEnded(r.by) || r.by == c.s.Life && !r.inherited)
}
