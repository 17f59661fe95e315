package roster

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Entry is one agent of the roster.
type Entry struct {
	core.Card
	Load core.Load
	// Reported is the load state that the agent reported; zero if it reported none.
	Reported core.LoadState
	// Since is when the agent joined.
	Since time.Time
	// Vitals is the last health report of the agent; nil before the first. It is replaced,
	// never changed.
	Vitals *core.Vitals
	// Child is the state of an agent that the hub runs itself, else nil. It is replaced, never
	// changed.
	Child *core.Child
	// OnlyByID hides the agent from every address except its id.
	OnlyByID bool
	// MinHops is how many hops a task has at least that the principal of the agent opens at another hub,
	// and HopsUntil when that ends; zero is never. See [Roster.MinHops].
	MinHops   int
	HopsUntil time.Time
	// Hub is the name of the hub that has the agent's connection; "" for this one.
	Hub string
	// Member is the connection of the agent.
	Member Member

	turn uint64 // the number of the last task that was assigned, for round robin
}

// Answers reports whether the agent matches the address, and how well. Its card
// decides, unless the agent is OnlyByID.
func (e Entry) Answers(to core.Address) (score int, ok bool) {
	if e.OnlyByID && !to.ByID() {
		return 0, false
	}
	return e.Card.Answers(to)
}

// Capacity returns how many tasks the agent runs at once.
func (e Entry) Capacity() int { return max(1, e.MaxConcurrent) }

// AcceptsWork reports whether the agent accepts new work at all.
func (e Entry) AcceptsWork() bool {
	return e.up() && e.Reported != core.LoadOverloaded && e.Reported != core.LoadDraining
}

// up reports whether the agent is ready, where the hub runs it itself.
func (e *Entry) up() bool { return e.Child == nil || e.Child.State == core.ChildReady }

// Free reports whether the agent can run one more task now.
func (e Entry) Free() bool { return e.AcceptsWork() && e.Load.Active < e.Capacity() }

// Roster is the set of connected agents. It is safe for concurrent use. Finding the best
// agent for an address costs the same with ten agents and with twenty thousand.
type Roster struct {
	mu      sync.Mutex
	entries map[core.AgentID]*record
	standby map[core.AgentID][]Entry // the latest last
	aliases aliases                  // of the ids in entries and in standby
	called  called                   // the names of entries
	groups  map[groupKey]*group
	names   names
	hops    hops
	turns   uint64
	watch   func(*Entry) // see Watch; may be nil
}

// record is an entry and its positions in the index.
type record struct {
	Entry
	rank   rank
	places []place // in each of its groups
}

// New returns an empty Roster.
func New() *Roster {
	return &Roster{
		entries: map[core.AgentID]*record{}, standby: map[core.AgentID][]Entry{}, aliases: aliases{}, called: called{}, groups: map[groupKey]*group{}, hops: hops{},
	}
}

func newEntry(card core.Card, m Member, now time.Time) Entry {
	return Entry{Card: card, Member: m, Since: now, Load: core.Load{State: core.LoadIdle, LastSeen: now}}
}

// Add makes the member the agent of the card; with onlyByID, only its id and alias find it.
// It returns a conflict Fault if another agent has the id.
func (r *Roster) Add(card core.Card, m Member, onlyByID bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[card.ID] != nil {
		return core.NewFault(core.CodeConflict, "agent %s already registered: choose another id%s or wait until it has left", card.ID, r.another(card.ID))
	}
	e := &record{Entry: newEntry(card, m, time.Now())}
	e.OnlyByID = onlyByID
	r.insert(e)
	return nil
}

// another suggests a free id similar to the given one, as part of a sentence; "" if it
// finds none.
func (r *Roster) another(id core.AgentID) string {
	for n := range 99 {
		free := core.AgentID(fmt.Sprintf("%s-%d", id, n+1))
		if r.entries[free] == nil && core.CheckAgentID(free) == nil {
			return ", such as " + string(free) + ","
		}
	}
	return ""
}

// Remove removes an agent. A member on standby for the id is found from then on.
func (r *Roster) Remove(id core.AgentID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[id]; e != nil {
		r.remove(e)
	}
}

// SetCard replaces the card of the agent with that id, and sets OnlyByID. It reports
// whether the agent is known.
func (r *Roster) SetCard(card core.Card, onlyByID bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[card.ID]
	if e == nil {
		return false
	}
	r.leave(e)
	r.called.remove(e.Card)
	r.called.add(card)
	e.Card, e.OnlyByID = card, onlyByID
	e.Load.State = e.state()
	r.join(e)
	return true
}

// Change calls fn to change the entry of an agent, and reports whether it is known. fn must
// not call the roster, and must not change capabilities, domains or OnlyByID: use SetCard.
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
	if r.watch != nil && e.Hub == "" {
		r.watch(&e.Entry)
	}
	return true
}

// Start notes that a task was assigned to the agent.
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
	case e.Reported == core.LoadDraining || e.Reported == core.LoadOverloaded:
		return e.Reported
	case !e.up():
		return core.LoadOverloaded
	case e.Load.Active == 0 && e.Load.Queued == 0 && e.Reported != core.LoadBusy:
		return core.LoadIdle
	case e.Load.Active >= e.Capacity() && e.Load.Queued > 0:
		return core.LoadOverloaded
	}
	return core.LoadBusy
}

// Get returns the entry of an agent.
func (r *Roster) Get(id core.AgentID) (Entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[id]; e != nil {
		return e.Entry, true
	}
	return Entry{}, false
}

// Totals are sums over all agents.
type Totals struct {
	Agents, Active, Queued int
	// Full is how many agents accept no new task.
	Full int
}

// Totals returns the sums over all agents for which keep is true. keep must not call the roster.
func (r *Roster) Totals(keep func(*Entry) bool) (t Totals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		if !keep(&e.Entry) {
			continue
		}
		t.Agents, t.Active, t.Queued = t.Agents+1, t.Active+e.Load.Active, t.Queued+e.Load.Queued
		if e.Load.State == core.LoadOverloaded || e.Load.State == core.LoadDraining {
			t.Full++
		}
	}
	return t
}

// List returns all agents, ordered by id.
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

// Page returns, ordered by id, the first n agents after an id for which keep is true, and
// how many more there are. keep must not call the roster.
func (r *Roster) Page(after core.AgentID, n int, keep func(*Entry) bool) (page []Entry, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []core.AgentID
	for id, e := range r.entries {
		if id > after && keep(&e.Entry) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids[:min(n, len(ids))] {
		page = append(page, r.entries[id].Entry)
	}
	return page, len(ids) - len(page)
}

// Match returns all agents that answer for the address, best first: see [Roster.Best]. For
// an address by id it returns the agents whether they accept work or not.
func (r *Roster) Match(to core.Address) (all []Entry) {
	for id := range to.Agents() {
		if e, ok := r.Get(id); ok {
			all = append(all, e)
		}
	}
	r.Best(to, func(e *Entry) Verdict {
		all = append(all, *e)
		return Continue
	})
	return all
}

// Nearest returns up to three ids similar to id, for an error message. With very many
// agents it compares only those with a similar beginning or end.
func (r *Roster) Nearest(id core.AgentID) []core.AgentID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names.nearest(id)
}
