package roster

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// hops are the agents of other hubs with MinHops, by the id of their principal.
type hops map[string]map[core.AgentID]*record

func (h hops) add(e *record) {
	if e.Hub == "" || e.MinHops == 0 {
		return
	}
	by := e.Member.Principal()
	if !by.Authenticated {
		return
	}
	if h[by.ID] == nil {
		h[by.ID] = map[core.AgentID]*record{}
	}
	h[by.ID][e.ID] = e
}

func (h hops) remove(e *record) {
	if e.Hub == "" || e.MinHops == 0 {
		return
	}
	by := e.Member.Principal().ID
	if delete(h[by], e.ID); len(h[by]) == 0 {
		delete(h, by)
	}
}

// MinHops returns how many hops a task has at least that an authenticated principal opens now,
// because of what its agents at other hubs work on.
func (r *Roster) MinHops(principal string, now time.Time) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.hops[principal] {
		if e.HopsUntil.IsZero() || now.Before(e.HopsUntil) {
			n = max(n, e.MinHops)
		}
	}
	return n
}
