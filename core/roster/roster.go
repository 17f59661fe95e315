package roster

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Entry is one agent as the roster knows it.
type Entry struct {
	core.Card
	Load core.Load
	// Said is the load that the agent itself reported; zero if it did not.
	Said core.LoadState
	// Since is when it joined.
	Since time.Time
	// Pace is about how long it took for its latest tasks; zero before the first.
	Pace time.Duration
	// Vitals are what it last said of how it is; nil if it never did. They are not
	// changed but replaced.
	Vitals *core.Vitals
	// OnlyByID hides it from every address but one by its id.
	OnlyByID bool

	turn uint64 // grows with each task that it is given
}

// Answers reports whether the agent answers for the address, and how well: as its
// card says, unless it is found by its id alone.
func (e Entry) Answers(to core.Address) (score int, ok bool) {
	if e.OnlyByID && to.Reach() != core.ReachAgent {
		return 0, false
	}
	return e.Card.Answers(to)
}

// Capacity is how many tasks the agent runs at once.
func (e Entry) Capacity() int { return max(1, e.MaxConcurrent) }

// Takes reports whether the agent takes new work at all.
func (e Entry) Takes() bool { return e.Said != core.LoadOverloaded && e.Said != core.LoadDraining }

// Free reports whether the agent can run one more task now.
func (e Entry) Free() bool { return e.Takes() && e.Load.Active < e.Capacity() }

// Roster is who is here. It is safe for concurrent use. Finding the best agent for an
// address costs the same with ten agents and with twenty thousand.
type Roster struct {
	mu      sync.Mutex
	entries map[core.AgentID]*record
	groups  map[groupKey]*group
	names   names
	turns   uint64
}

// record is an entry and where it stands.
type record struct {
	Entry
	rank   rank
	places []place // in each of its groups
}

// New makes an empty Roster.
func New() *Roster {
	return &Roster{entries: map[core.AgentID]*record{}, groups: map[groupKey]*group{}}
}

// Add lets an agent in, which may be found by its id alone. It returns a conflict
// Fault when its id is taken.
func (r *Roster) Add(card core.Card, onlyByID bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[card.ID] != nil {
		return core.NewFault(core.CodeConflict, "agent %s already registered: choose another id%s or wait until it has left", card.ID, r.another(card.ID))
	}
	now := time.Now()
	e := &record{Entry: Entry{Card: card, Since: now, OnlyByID: onlyByID, Load: core.Load{State: core.LoadIdle, LastSeen: now}}}
	r.entries[card.ID] = e
	r.names.add(card.ID)
	r.join(e)
	return nil
}

// another names an id like the given one that is free now, as part of a sentence;
// nothing where none of the first is.
func (r *Roster) another(id core.AgentID) string {
	for n := range 99 {
		free := core.AgentID(fmt.Sprintf("%s-%d", id, n+1))
		if r.entries[free] == nil && core.CheckAgentID(free) == nil {
			return ", such as " + string(free) + ","
		}
	}
	return ""
}

// Remove lets an agent go.
func (r *Roster) Remove(id core.AgentID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[id]
	if e == nil {
		return
	}
	r.leave(e)
	r.names.remove(id)
	delete(r.entries, id)
}

// SetCard replaces the card of an agent, whose id stays, and says whether it is found
// by its id alone. It reports whether the agent is here.
func (r *Roster) SetCard(card core.Card, onlyByID bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[card.ID]
	if e == nil {
		return false
	}
	r.leave(e)
	e.Card, e.OnlyByID = card, onlyByID
	e.Load.State = e.state()
	r.join(e)
	return true
}

// Change lets fn alter the entry of an agent, and reports whether it is here. fn
// must not call the roster, and leaves the capabilities, the domains and OnlyByID as
// they are: see SetCard.
func (r *Roster) Change(id core.AgentID, fn func(*Entry)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[id]
	if e == nil {
		return false
	}
	fn(&e.Entry)
	e.Load.State = e.state()
	r.reorder(e)
	return true
}

// Start notes that a task was given to the agent.
func (r *Roster) Start(id core.AgentID) {
	r.Change(id, func(e *Entry) {
		e.Load.Active++
		r.turns++
		e.turn = r.turns
	})
}

// Finish notes that the agent ended a task.
func (r *Roster) Finish(id core.AgentID) {
	r.Change(id, func(e *Entry) { e.Load.Active-- })
}

func (e *Entry) state() core.LoadState {
	switch {
	case e.Said == core.LoadDraining || e.Said == core.LoadOverloaded:
		return e.Said
	case e.Load.Active == 0 && e.Load.Queued == 0 && e.Said != core.LoadBusy:
		return core.LoadIdle
	case e.Load.Active >= e.Capacity() && e.Load.Queued > 0:
		return core.LoadOverloaded
	}
	return core.LoadBusy
}

// Get returns the entry of one agent.
func (r *Roster) Get(id core.AgentID) (Entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[id]; e != nil {
		return e.Entry, true
	}
	return Entry{}, false
}

// Totals are the agents together.
type Totals struct {
	Agents, Active, Queued int
	// Full is how many of the agents take nothing new.
	Full int
}

// Totals adds everybody up.
func (r *Roster) Totals() (t Totals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		t.Agents, t.Active, t.Queued = t.Agents+1, t.Active+e.Load.Active, t.Queued+e.Load.Queued
		if e.Load.State == core.LoadOverloaded || e.Load.State == core.LoadDraining {
			t.Full++
		}
	}
	return t
}

// List returns everybody, by id.
func (r *Roster) List() []Entry {
	r.mu.Lock()
	all := make([]Entry, 0, len(r.entries))
	for _, e := range r.entries {
		all = append(all, e.Entry)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Page returns the first n agents behind an id, by id, that keep lets through, and how
// many more there are behind those. keep must not call the roster.
func (r *Roster) Page(after core.AgentID, n int, keep func(core.Card) bool) (page []Entry, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []core.AgentID
	for id, e := range r.entries {
		if id > after && keep(e.Card) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids[:min(n, len(ids))] {
		page = append(page, r.entries[id].Entry)
	}
	return page, len(ids) - len(page)
}

// Match returns everybody who answers for the address, best first: see [Roster.Best].
// Agents of an address by id are returned whether they take work or not.
func (r *Roster) Match(to core.Address) []Entry {
	if to.Reach() == core.ReachAgent {
		if e, ok := r.Get(to.Agent()); ok {
			return []Entry{e}
		}
		return nil
	}
	var all []Entry
	r.Best(to, func(e *Entry) Verdict {
		all = append(all, *e)
		return Continue
	})
	return all
}

// Nearest returns up to three ids that look most like id, for an error message. Where
// very many are here it compares those that begin or end alike.
func (r *Roster) Nearest(id core.AgentID) []core.AgentID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names.nearest(id)
}
