package hub

import (
	"cmp"
	"maps"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// Crossing is what went from one dialect to another: events of a kind, in tasks of requesters
// of a dialect for agents of a dialect.
type Crossing struct {
	Requester, Agent string
	Kind             core.Kind
}

// Crossings returns how many events of each kind there were between each pair of dialects, in
// the tasks that have ended since the hub started and that an agent worked on. A task counts
// for the dialect of its last agent.
func (h *Hub) Crossings() map[Crossing]uint64 { return h.crossings.all() }

// crossings counts events by pair of dialects. The number of pairs is bounded by the number of
// dialects, since a session names its own.
type crossings struct {
	mu sync.Mutex
	n  map[Crossing]uint64
}

// add counts the events of a task that has ended. It reads the log rather than each event as it
// comes: the answer of an agent does not wait for it.
func (c *crossings) add(j *job, agent string) {
	requester := cmp.Or(j.opener.identity.Dialect, j.From().Dialect)
	if agent == "" || requester == "" {
		return
	}
	var kinds [core.KindCancelled + 1]uint64
	log := j.Log()
	for e := range log.All() {
		kinds[e.Body.Kind()]++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, n := range kinds {
		if n > 0 {
			c.n[Crossing{requester, agent, core.Kind(k)}] += n
		}
	}
}

func (c *crossings) all() map[Crossing]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}
