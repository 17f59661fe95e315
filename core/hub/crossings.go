package hub

import (
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
func (c *crossings) add(j *job, agent string) {
	pair := dialects{j.opener.identity.Dialect, agent}
	if pair.agent == "" || pair.requester == "" {
		return
	}
	var kinds kindCounts
	log := j.Log()
	for e := range log.All() {
		kinds[e.Body.Kind()]++
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
