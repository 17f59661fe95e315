package cluster

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// joins are the agents that are about to join this hub: between the begin of Claim and Put. There
// is one at a time for an id, so that the last that has claimed it is the last that has joined.
// Another hub may want one of them already.
type joins struct {
	mu  sync.Mutex
	all map[core.AgentID]*join
}

type join struct {
	connection    uint64
	claimed, lost bool
	// before is the claim of another connection of this hub that was replaced.
	before string
	ended  chan struct{}
}

func newJoins() *joins { return &joins{all: map[core.AgentID]*join{}} }

// begin waits until nobody else is about to join with that id. It reports whether ctx has not
// ended.
func (j *joins) begin(ctx context.Context, id core.AgentID, connection uint64) bool {
	for {
		j.mu.Lock()
		other := j.all[id]
		if other == nil {
			j.all[id] = &join{connection: connection, ended: make(chan struct{})}
		}
		j.mu.Unlock()
		if other == nil {
			return true
		}
		select {
		case <-other.ended:
		case <-ctx.Done():
			return false
		}
	}
}

// end notes that the agent has joined, or will not. It returns the claim of this hub that was
// replaced, if the agent was about to join.
func (j *joins) end(id core.AgentID, connection uint64) (before string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.all[id]
	if s == nil || s.connection != connection {
		return ""
	}
	close(s.ended)
	delete(j.all, id)
	return s.before
}

// claimed notes that the id is claimed, and which claim of this hub was replaced. It reports
// whether nobody else has taken it since.
func (j *joins) claimed(id core.AgentID, connection uint64, before string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.all[id]
	if s == nil || s.connection != connection || s.lost {
		return false
	}
	s.claimed, s.before = true, before
	return true
}

func (j *joins) isLost(id core.AgentID, connection uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.all[id]
	return s == nil || s.connection != connection || s.lost
}

// take takes the id from a connection that is about to join. It reports whether there is one,
// and whether it will not join.
func (j *joins) take(id core.AgentID, connection uint64, taken bool) (joining, left bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.all[id]
	if s == nil || s.connection != connection {
		return false, false
	}
	if taken && !s.claimed {
		s.lost = true
	}
	return true, s.lost
}
