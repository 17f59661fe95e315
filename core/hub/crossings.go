package hub

import (
	"cmp"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// Crossing is what went between two dialects: events of a kind, in tasks of requesters of a
// dialect for agents of a dialect.
type Crossing struct {
	Requester, Agent string
	Kind             core.Kind
}

// Crossings returns how many events of each kind there were between each pair of dialects, in
// the tasks that have ended since the hub started and that an agent worked on. A task counts
// for the dialect of its last agent.
func (h *Hub) Crossings() map[Crossing]uint64 { return h.crossings.all() }

// crossings counts events by pair of dialects. The number of pairs is bounded by the number of
// dialects, since the program names them, not the peers.
type crossings struct {
	mu sync.Mutex
	n  map[dialects]*kindCounts
}

// dialects are those of a requester and an agent.
type dialects struct{ requester, agent string }

// kindCounts are numbers of events by kind.
type kindCounts [core.KindCancelled + 1]uint64

// add counts the events of a task that has ended. It reads the log rather than each event as it
// comes: the answer of an agent does not wait for it.
func (c *crossings) add(j *job) {
	pair := dialects{requester: j.opener.identity.Dialect}
	var kinds kindCounts
	log := j.Log()
	for e := range log.All() {
		kinds[e.Body.Kind()]++
		if b, ok := e.Body.(core.Assigned); ok {
			pair.agent = b.Dialect
		}
	}
	if pair.agent == "" || pair.requester == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.n[pair]
	if sum == nil {
		sum = new(kindCounts)
		c.n[pair] = sum
	}
	for k, n := range kinds {
		sum[k] += n
	}
}

func (c *crossings) all() map[Crossing]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[Crossing]uint64{}
	for pair, sum := range c.n {
		for k, n := range sum {
			if n > 0 {
				all[Crossing{pair.requester, pair.agent, core.Kind(k)}] = n
			}
		}
	}
	return all
}

// Loss is how often the dialect that events of a kind went to folded or refused them.
type Loss struct {
	From string `json:"from"` // the dialect that the events came from
	To   string `json:"to"`
	Kind string `json:"kind"`
	How  string `json:"how"` // folded or refused
	N    uint64 `json:"times"`
}

// Losses returns what was folded and refused between each pair of dialects, as their tables say, in
// the tasks that [Hub.Crossings] counts; the greatest first. A dialect without a table loses nothing.
func (h *Hub) Losses(tables core.Translations) []Loss {
	all := []Loss{}
	// In the two directions there are different kinds, so no loss comes twice, not even where both
	// sides speak one dialect.
	for x, n := range h.Crossings() {
		how := tables.Lost(x.Requester, x.Agent, x.Kind)
		if how == 0 {
			continue
		}
		from, to := x.Agent, x.Requester
		if x.Kind.ForAgent() {
			from, to = to, from
		}
		all = append(all, Loss{from, to, x.Kind.String(), how.String(), n})
	}
	slices.SortFunc(all, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}
