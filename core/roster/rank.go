package roster

import (
	"cmp"
	"container/heap"
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

// before reports whether an agent is a better choice than another.
func (e *record) before(o *record) bool {
	a, b := &e.rank, &o.rank
	switch {
	case a.accepts != b.accepts:
		return a.accepts
	case a.free != b.free:
		return a.free
	case a.pressure != b.pressure:
		return a.pressure < b.pressure
	case a.elsewhere != b.elsewhere:
		return b.elsewhere
	case a.turn != b.turn:
		return a.turn < b.turn
	}
	return cmp.Less(e.ID, o.ID)
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
func (g *group) Less(i, j int) bool { return g.agents[i].before(g.agents[j].record) }

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
// costs constant time, each further one O(log k) for k agents seen. For several
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
// other groups are wanted. It visits only a part of the heap: the next one is always a
// child of one that was yielded.
func (g *group) each(yield func(*record) Verdict) (more bool) {
	if g == nil {
		return true
	}
	switch yield(g.agents[0].record) { // usually the only one, so no frontier is allocated
	case Stop:
		return false
	case SkipWorse:
		return true
	}
	next := &frontier{group: g}
	next.descend(0)
	for next.Len() > 0 {
		i := heap.Pop(next).(int)
		switch yield(g.agents[i].record) {
		case Stop:
			return false
		case SkipWorse:
			return true
		}
		next.descend(i)
	}
	return true
}

// frontier is a heap of the agents whose parents were yielded.
type frontier struct {
	group *group
	at    []int
}

// descend adds the children of an agent.
func (f *frontier) descend(i int) {
	for child := 2*i + 1; child <= 2*i+2 && child < f.group.Len(); child++ {
		heap.Push(f, child)
	}
}

func (f *frontier) Len() int           { return len(f.at) }
func (f *frontier) Less(i, j int) bool { return f.group.Less(f.at[i], f.at[j]) }
func (f *frontier) Swap(i, j int)      { f.at[i], f.at[j] = f.at[j], f.at[i] }
func (f *frontier) Push(x any)         { f.at = append(f.at, x.(int)) }

func (f *frontier) Pop() any {
	last := len(f.at) - 1
	i := f.at[last]
	f.at = f.at[:last]
	return i
}
