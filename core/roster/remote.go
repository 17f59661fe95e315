package roster

import (
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// Put adds an agent of another hub, or replaces its entry. It reports false, and does nothing, if
// the id belongs to an agent of this hub or of a third one.
func (r *Roster) Put(e Entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.entries[e.ID]; old != nil {
		if old.Hub != e.Hub {
			return false
		}
		e.turn = old.turn
		r.remove(old)
	}
	e.Load.State = e.state()
	r.insert(&record{Entry: e})
	return true
}

// Send notes that a task goes to an agent of another hub: its load counts the task until that hub says
// what the load is.
func (r *Roster) Send(id core.AgentID) {
	r.Change(id, func(e *Entry) {
		if e.Hub != "" {
			e.Load.Active++
			r.turns++
			e.turn = r.turns
		}
	})
}

// Return notes that such a task has ended, or does not go there.
func (r *Roster) Return(id core.AgentID) {
	r.Change(id, func(e *Entry) {
		if e.Hub != "" && e.Load.Active > 0 { // else its hub has said so
			e.Load.Active--
		}
	})
}

// Watch calls changed whenever an entry of an agent of this hub was changed by [Roster.Change]. It
// is called before there are agents. changed must return at once and not call the roster.
func (r *Roster) Watch(changed func(*Entry)) { r.watch = changed }

// RemoveHub removes all agents of another hub.
func (r *Roster) RemoveHub(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Collect(maps.Values(r.entries)) {
		if e.Hub == name {
			r.remove(e)
		}
	}
}

// insert adds an agent. Callers hold mu.
func (r *Roster) insert(e *record) {
	r.entries[e.ID] = e
	r.aliases.add(e.ID)
	r.names.add(e.ID)
	r.called.add(e.Card)
	r.hops.add(e)
	r.join(e)
}

// remove removes an agent. Callers hold mu.
func (r *Roster) remove(e *record) {
	r.leave(e)
	r.names.remove(e.ID)
	r.called.remove(e.Card)
	r.hops.remove(e)
	delete(r.entries, e.ID)
	r.forget(e.ID)
}
