package cluster

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// own is the part of the roster that this hub tells the others. Its lock is held for about a
// millisecond at most.
type own struct {
	mu     sync.Mutex
	agents map[core.AgentID]*ownAgent
	// due are the agents that joined, changed or left, dueLoads those with another load, since
	// it was told.
	due, dueLoads []core.AgentID

	// What was told: its version and digest.
	at     uint64
	digest digest

	snapshots []*snapshot
}

// ownAgent is an agent of this hub: as it is, and as it was told.
type ownAgent struct {
	now          Entry
	told         *shown // nil if it was not
	left         bool
	due, dueLoad bool
}

func newOwn() *own { return &own{agents: map[core.AgentID]*ownAgent{}} }

func (o *own) put(e Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.agents[e.Card.ID]
	if a == nil {
		a = &ownAgent{}
		o.agents[e.Card.ID] = a
	}
	a.now, a.left = e, false
	o.owe(e.Card.ID, a)
}

func (o *own) remove(id core.AgentID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.agents[id]; a != nil {
		a.left = true
		o.owe(id, a)
	}
}

func (o *own) setLoad(id core.AgentID, l Load) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.agents[id]
	if a == nil || a.left || a.now.Load == l {
		return
	}
	a.now.Load = l
	if !a.due && !a.dueLoad {
		a.dueLoad = true
		o.dueLoads = append(o.dueLoads, id)
	}
}

func (o *own) owe(id core.AgentID, a *ownAgent) {
	if !a.due {
		a.due = true
		o.due = append(o.due, id)
	}
}

// deltaBytes is about how large a delta is. Writing one holds the lock.
const deltaBytes = 64 << 10

// next returns the next delta with what changed, if there is one, and why agents cannot be told.
func (o *own) next() (d delta, more bool, refused []error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, i := 0, 0
	for ; i < len(o.due) && size < deltaBytes; i++ {
		n, err := o.tell(o.due[i], &d)
		if size += n; err != nil {
			refused = append(refused, err)
		}
	}
	o.due = slices.Delete(o.due, 0, i)
	d, more = o.bump(d)
	return d, more, refused
}

// tell adds an agent that is due to the delta, and returns about what it takes.
func (o *own) tell(id core.AgentID, d *delta) (size int, err error) {
	a := o.agents[id]
	if a == nil {
		return 0, nil
	}
	a.due = false
	var told *shown
	var it item
	if !a.left {
		told, it, err = newShown(a.now)
	}
	switch {
	case told != nil && a.told != nil && told.sum() == a.told.sum():
		return 0, nil
	case told != nil:
		d.Agents = append(d.Agents, it)
	case a.told != nil:
		d.Gone = append(d.Gone, id)
	}
	o.digest += told.sum() - a.told.sum()
	if a.told = told; a.left {
		delete(o.agents, id)
	}
	return len(it.Agent) + len(it.Load) + len(id) + len(`{"agent":,"load":},`), err
}

// loadBytes is about how many bytes of loads are told at once: the rest is told later.
const loadBytes = 16 << 10

// nextLoads returns the next delta with loads alone, if there is one.
func (o *own) nextLoads() (d delta, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, i := 0, 0
	for ; i < len(o.dueLoads) && size < loadBytes; i++ {
		a := o.agents[o.dueLoads[i]]
		if a == nil {
			continue
		}
		if a.dueLoad = false; a.due || a.told == nil || a.told.Load == a.now.Load {
			continue
		}
		told, it := a.told.withLoad(a.now.Load)
		o.digest += told.loadSum - a.told.loadSum
		a.told, d.Loads = told, append(d.Loads, it)
		size += len(it.ID) + len(it.Load) + len(`{"id":"","load":},`)
	}
	o.dueLoads = slices.Delete(o.dueLoads, 0, i)
	return o.bump(d)
}

// bump gives the delta its version, if it says anything.
func (o *own) bump(d delta) (delta, bool) {
	if len(d.Gone)+len(d.Agents)+len(d.Loads) == 0 {
		return d, false
	}
	o.at++
	d.form, d.At = of(kindDelta), o.at
	return d, true
}

// told returns the version and the digest of what was told, and how many agents there are.
func (o *own) told() (at uint64, sum digest, agents int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at, o.digest, len(o.agents)
}
