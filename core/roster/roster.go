package roster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

	turn uint64
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

// Roster is who is here. It is safe for concurrent use.
type Roster struct {
	mu      sync.Mutex
	entries map[core.AgentID]*Entry
	turns   uint64
}

// New makes an empty Roster.
func New() *Roster { return &Roster{entries: map[core.AgentID]*Entry{}} }

// Add lets an agent in, which may be found by its id alone. It returns a conflict
// Fault when its id is taken.
func (r *Roster) Add(card core.Card, onlyByID bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.entries[card.ID]; old != nil {
		return core.NewFault(core.CodeConflict, "agent %s already registered: choose another id%s or wait until it has left", card.ID, r.another(card.ID))
	}
	now := time.Now()
	r.entries[card.ID] = &Entry{Card: card, Since: now, OnlyByID: onlyByID, Load: core.Load{State: core.LoadIdle, LastSeen: now}}
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
	delete(r.entries, id)
}

// Change lets fn alter the entry of an agent, and reports whether it is here. fn
// must not call the roster.
func (r *Roster) Change(id core.AgentID, fn func(*Entry)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[id]
	if e == nil {
		return false
	}
	fn(e)
	e.Load.State = e.state()
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
		return *e, true
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
		all = append(all, *e)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Match returns who answers for the address, best first: the longest domain
// prefix, then whoever takes work, then the lowest load relative to capacity,
// ties in turn. Agents of an address by id are returned whether they take work
// or not.
func (r *Roster) Match(to core.Address) []Entry {
	if to.Reach() == core.ReachAgent {
		if e, ok := r.Get(to.Agent()); ok {
			return []Entry{e}
		}
		return nil
	}
	type scored struct {
		Entry
		score int
	}
	var found []scored
	r.mu.Lock()
	for _, e := range r.entries {
		if score, ok := e.Answers(to); ok {
			found = append(found, scored{*e, score})
		}
	}
	r.mu.Unlock()
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(
			cmp.Compare(b.score, a.score),
			compareBool(b.Takes(), a.Takes()),
			cmp.Compare(a.pressure(), b.pressure()),
			cmp.Compare(a.turn, b.turn),
			cmp.Compare(a.ID, b.ID),
		)
	})
	out := make([]Entry, len(found))
	for i, f := range found {
		out[i] = f.Entry
	}
	return out
}

func (e Entry) pressure() float64 {
	return float64(e.Load.Active+e.Load.Queued) / float64(e.Capacity())
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Nearest returns up to three ids that look most like id, for an error message.
func (r *Roster) Nearest(id core.AgentID) []core.AgentID {
	type near struct {
		id core.AgentID
		d  int
	}
	var all []near
	for _, e := range r.List() {
		d := distance(strings.ToLower(string(id)), strings.ToLower(string(e.ID)))
		if d <= max(2, len(id)/2) || strings.Contains(strings.ToLower(string(e.ID)), strings.ToLower(string(id))) {
			all = append(all, near{e.ID, d})
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(a.d, b.d) })
	var out []core.AgentID
	for _, n := range all[:min(3, len(all))] {
		out = append(out, n.id)
	}
	return out
}

// distance is the edit distance of two short texts; long ones are cut.
func distance(a, b string) int {
	const most = 64
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
