package roster

import "github.com/dragoman-hub/dragoman/core"

// Member is the connection of an agent. The roster compares members with ==, and calls
// Principal with its lock held.
type Member interface {
	// Principal returns the principal of the connection. It never changes.
	Principal() core.Principal
}

// Find returns the entry that an address by the id or alias reaches: that of the agent, or
// of the latest member on standby for the id.
func (r *Roster) Find(id core.AgentID) (Entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id = r.resolve(id)
	if e := r.entries[id]; e != nil {
		return e.Entry, true
	}
	if all := r.standby[id]; len(all) > 0 {
		return all[len(all)-1], true
	}
	return Entry{}, false
}

// Resolve returns the id that [Roster.Find] finds by an alias. It returns any other text
// unchanged.
func (r *Roster) Resolve(id core.AgentID) core.AgentID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resolve(id)
}

// resolve is Resolve. Callers hold mu.
func (r *Roster) resolve(id core.AgentID) core.AgentID {
	if r.knows(id) {
		return id
	}
	if digits, ok := hexOf(id); ok {
		if of := r.aliases[digits]; len(of) > 0 {
			return of[0]
		}
	}
	return id
}

// knows reports whether an agent has the id or a member is on standby for it. Callers hold mu.
func (r *Roster) knows(id core.AgentID) bool { return r.entries[id] != nil || len(r.standby[id]) > 0 }

// forget removes the aliases of an id that is no longer known. Callers hold mu.
func (r *Roster) forget(id core.AgentID) {
	if !r.knows(id) {
		r.aliases.remove(id)
	}
}

// Member returns the member that is the agent of the id, or nil.
func (r *Roster) Member(id core.AgentID) Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[id]; e != nil {
		return e.Member
	}
	return nil
}
