package hub

import (
	"context"
	"maps"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// SetChild records the state of the session's agent, which the hub runs itself. Unless it is
// ready, its tasks wait in its queue. Once it has failed, they fail as unreachable with the
// reason, and so do new ones, unless another agent may have them.
func (s *Session) SetChild(c core.Child) {
	h := s.hub
	h.mu.Lock()
	if s.closed {
		h.mu.Unlock()
		return
	}
	h.roster.Change(s.id, func(e *roster.Entry) { e.Child = &c })
	h.tellCluster(s)
	if c.State != core.ChildFailed {
		h.dispatch(s)
		h.mu.Unlock()
		return
	}
	queue := s.queue
	s.queue = nil
	h.queueChanged(s)
	h.mu.Unlock()

	s.mu.Lock()
	work := maps.Clone(s.work)
	s.mu.Unlock()
	why := childFailed(s.AgentID(), c)
	for _, o := range append(h.failWork(s, work, why), h.failQueue(queue, why)...) {
		o.job.End(core.Failed{Fault: o.why})
	}
}

// childFailed returns the Fault for a task of an agent that could not be started.
func childFailed(id core.AgentID, c core.Child) *core.Fault {
	return core.NewFault(core.CodeUnreachable, "agent %s could not be started: %s", id, c.LastError)
}

// Restart starts an agent or a pack of the hub's settings again. It returns a not_authorized
// Fault unless the principal is an operator, an unknown_agent Fault for a name that is not in the
// settings, and an unsupported Fault for a hub that runs none.
func (h *Hub) Restart(p core.Principal, name string) error {
	_, err := h.do(context.Background(), nil, core.Call{Principal: p, Command: core.Restart{Name: name}}, nil)
	return err
}

func (h *Hub) restart(name string) error {
	if h.restartChild == nil {
		return core.NewFault(core.CodeUnsupported, "this hub runs no agents or packs itself")
	}
	return h.restartChild(name)
}
