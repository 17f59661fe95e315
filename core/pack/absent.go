package pack

import (
	"maps"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// absence is why a pack offers nothing.
type absence struct {
	peer Peer
	why  *core.Fault
}

// Absent says why the pack of a peer offers nothing, such as while it starts: until the peer offers it, or
// leaves, calls of tools whose names begin with its id and a dot are answered with that. The id is not
// taken: another peer may provide the pack.
func (r *Registry) Absent(p Peer, id string, why *core.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.absent[id] = absence{p, why}
}

// Missing returns the pack of a tool that nobody offers, who is to provide it, and why it is absent; nil
// for a tool of no such pack.
func (r *Registry) Missing(tool string) (id string, by Peer, why *core.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tools[tool] != nil {
		return "", nil, nil
	}
	id, a := r.absenceOf(tool)
	return id, a.peer, a.why
}

// appears forgets the absence of the pack of a peer. Callers hold mu.
func (r *Registry) appears(p Peer) {
	maps.DeleteFunc(r.absent, func(_ string, a absence) bool { return a.peer == p })
}

// absenceOf returns the absent pack of a tool. Callers hold mu.
func (r *Registry) absenceOf(tool string) (id string, a absence) {
	id, _, dotted := strings.Cut(tool, ".")
	a, is := r.absent[id]
	if !dotted || !is {
		return "", absence{}
	}
	for _, p := range r.packs {
		if p.id == id {
			return "", absence{}
		}
	}
	return id, a
}
