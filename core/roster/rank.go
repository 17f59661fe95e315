package roster

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// rank orders agents that match an address equally well: see [Roster.Best].
type rank struct {
	accepts, free bool
	pressure      float64 // load relative to capacity
	elsewhere     bool    // another hub has it
	turn          uint64
}

func (e *Entry) rank() rank {
	return rank{
		accepts: e.AcceptsWork(), free: e.Free(),
		pressure: float64(e.Load.Active+e.Load.Queued) / float64(e.Capacity()), elsewhere: e.Hub != "", turn: e.turn,
	}
}

// compare orders agents, the better choice first.
func (e *record) compare(o *record) int {
	a, b := &e.rank, &o.rank
	switch {
	case a.accepts != b.accepts:
		return first(a.accepts)
	case a.free != b.free:
		return first(a.free)
	case a.pressure != b.pressure:
		return cmp.Compare(a.pressure, b.pressure)
	case a.elsewhere != b.elsewhere:
		return first(b.elsewhere)
	}
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(e.ID, o.ID))
}

// first returns the comparison of two of which one comes first.
func first(is bool) int {
	if is {
		return -1
	}
	return 1
}

// groupKey names a group: all agents, or those that declared a capability or a domain.
type groupKey struct {
	by   core.Reach
	name string
}

// group is a heap of agents, the best one first.
type group struct {
	key    groupKey
	agents []ranked
}

// ranked is an agent in a group. The group is the nth of the agent's places.
type ranked struct {
	*record
	nth int
}

// place is the position of an agent in a group.
type place struct {
	group *group
	index int
}

var _ heap.Interface = (*group)(nil)

// Len implements heap.Interface, as do Less, Swap, Push and Pop.
func (g *group) Len() int           { return len(g.agents) }
func (g *group) Less(i, j int) bool { return g.agents[i].compare(g.agents[j].record) < 0 }

func (g *group) Swap(i, j int) {
	g.agents[i], g.agents[j] = g.agents[j], g.agents[i]
	g.agents[i].moved(i)
	g.agents[j].moved(j)
}

func (g *group) Push(x any) {
	m := x.(ranked)
	g.agents = append(g.agents, m)
	m.moved(len(g.agents) - 1)
}

func (g *group) Pop() any {
	last := len(g.agents) - 1
	m := g.agents[last]
	g.agents[last] = ranked{}
	g.agents = g.agents[:last]
	return m
}

func (m ranked) moved(to int) { m.places[m.nth].index = to }

// groupsOf returns the groups of an agent, each once.
func (e *Entry) groupsOf() []groupKey {
	if e.OnlyByID {
		return nil
	}
	keys := []groupKey{{by: core.ReachAny}}
	seen := map[groupKey]bool{}
	add := func(k groupKey) {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	for _, c := range e.Capabilities {
		add(groupKey{core.ReachCapability, c})
	}
	for _, d := range e.Domains {
		add(groupKey{core.ReachDomain, strings.TrimSuffix(d, ".*")})
	}
	return keys
}

// join adds an agent to its groups. Callers hold mu.
func (r *Roster) join(e *record) {
	e.rank = e.Entry.rank()
	keys := e.groupsOf()
	e.places = make([]place, len(keys))
	for i, k := range keys {
		g := r.groups[k]
		if g == nil {
			g = &group{key: k}
			r.groups[k] = g
		}
		e.places[i].group = g
		heap.Push(g, ranked{e, i})
	}
}

// leave removes an agent from its groups. Callers hold mu.
func (r *Roster) leave(e *record) {
	for _, p := range e.places {
		heap.Remove(p.group, p.index)
		if p.group.Len() == 0 {
			delete(r.groups, p.group.key)
		}
	}
	e.places = nil
}

// reorder restores the order of an agent's groups after a change of its rank. Callers hold mu.
func (r *Roster) reorder(e *record) {
	now := e.Entry.rank()
	if now == e.rank {
		return
	}
	e.rank = now
	for _, p := range e.places {
		heap.Fix(p.group, p.index)
	}
}

// Verdict tells [Roster.Best] how to continue.
type Verdict uint8

// The verdicts.
const (
	Continue  Verdict = iota // with the next agent
	SkipWorse                // skip the remaining agents that answer equally well: they rank worse
	Stop                     // end
)

// Best calls yield with the agents that answer for the address, best first: by the length
// of the matching domain prefix, then agents that accept work, then agents with a free
// slot, then by load relative to capacity, then those of this hub, and round robin among equals. The first agent
// costs constant time, the second has the others sorted. For several
// capabilities it goes through the agents with the rarest of them. For an address
// by id it yields none: use [Roster.Get]. yield must not call the roster, and must not keep or
// change the entry.
func (r *Roster) Best(to core.Address, yield func(*Entry) Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch to.Reach() {
	case core.ReachAny:
		r.groups[groupKey{by: core.ReachAny}].each(func(e *record) Verdict { return yield(&e.Entry) })
	case core.ReachCapability:
		all := to.Capabilities()
		var rarest *group
		for _, c := range all {
			g := r.groups[groupKey{core.ReachCapability, c}]
			if g == nil {
				return
			}
			if rarest == nil || g.Len() < rarest.Len() {
				rarest = g
			}
		}
		rarest.each(func(e *record) Verdict {
			if _, ok := e.Answers(to); len(all) > 1 && !ok {
				return Continue
			}
			return yield(&e.Entry)
		})
	case core.ReachDomain:
		for prefix, more := to.Domain(), true; more; {
			more = r.groups[groupKey{core.ReachDomain, prefix}].each(func(e *record) Verdict {
				if score, _ := e.Answers(to); score != len(prefix) {
					return Continue // it also declared a longer prefix and was yielded for that
				}
				return yield(&e.Entry)
			})
			dot := strings.LastIndexByte(prefix, '.')
			if dot < 0 {
				return
			}
			prefix = prefix[:dot]
		}
	}
}

// each yields the agents in order until a verdict ends it, and reports whether agents of
// other groups are wanted. Mostly the first is enough, so that only then the others are ordered.
func (g *group) each(yield func(*record) Verdict) (more bool) {
	if g == nil {
		return true
	}
	verdict := yield(g.agents[0].record)
	if verdict == Continue && len(g.agents) > 1 {
		others := slices.Clone(g.agents[1:])
		slices.SortFunc(others, func(a, b ranked) int { return a.compare(b.record) })
		for i := 0; verdict == Continue && i < len(others); i++ {
			verdict = yield(others[i].record)
		}
	}
	return verdict != Stop
}
