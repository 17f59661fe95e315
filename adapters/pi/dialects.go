package pi

import (
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// maxDialects is of how many agents the dialect is known when they have left.
const maxDialects = 4096

// dialects are those of the agents of the hub, also of some that have left. They are safe
// for concurrent use.
type dialects struct {
	hub *hub.Hub

	mu    sync.Mutex
	known *lru.Cache[core.AgentID, string]
}

func newDialects(h *hub.Hub) *dialects {
	return &dialects{hub: h, known: lru.New(lru.Options[core.AgentID, string]{Count: maxDialects})}
}

// note remembers the dialect of an agent.
func (d *dialects) note(id core.AgentID, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.known.Get(id); !ok || known != name {
		d.known.Put(id, name)
	}
}

// of names the dialect of an agent; "" of one that was never here.
func (d *dialects) of(id core.AgentID) string {
	if a, ok := d.hub.Agent(id); ok {
		d.note(id, a.Dialect)
		return a.Dialect
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	name, _ := d.known.Get(id)
	return name
}
