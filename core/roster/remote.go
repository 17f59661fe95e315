package roster

import (
	"maps"
	"slices"
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
	r.join(e)
}

// remove removes an agent. Callers hold mu.
func (r *Roster) remove(e *record) {
	r.leave(e)
	r.names.remove(e.ID)
	r.called.remove(e.Card)
	delete(r.entries, e.ID)
	r.forget(e.ID)
}
