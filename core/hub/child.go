package hub

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// SetChild records the state of the session's agent, which the hub runs itself. Unless it is
// ready, its tasks wait in its queue. Once it has failed, they fail as unreachable with the
// reason, and so do new ones, unless another agent may have them. Being ready is a sign of life.
func (s *Session) SetChild(c core.Child) {
	h := s.hub
	h.mu.Lock()
	if s.closed {
		h.mu.Unlock()
		return
	}
	h.roster.Change(s.id, func(e *roster.Entry) {
		if e.Child = &c; c.State == core.ChildReady {
			e.Load.LastSeen = time.Now()
		}
	})
	h.announceEverywhere(s)
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

// Restart starts an agent or a pack of the settings again: that of this hub, else the agent that is
// connected to another hub, else that of the first hub by name which has it. It returns a
// not_authorized Fault unless the principal is an operator, an unknown_agent Fault for a name that is
// in no settings, and an unsupported Fault where no hub runs any. It may wait for other hubs.
func (h *Hub) Restart(ctx context.Context, p core.Principal, name string) error {
	_, err := h.do(ctx, nil, core.Call{Principal: p, Command: core.Restart{Name: name}}, nil)
	return err
}

// restartMethod asks a hub to restart an agent or a pack of its settings.
const restartMethod rpc.Method[string, struct{}] = "restart"

// restartAnywhere restarts an agent or a pack of any hub.
func (h *Hub) restartAnywhere(ctx context.Context, p core.Principal, name string) error {
	err := h.restart(name)
	if err == nil || !isElsewhere(err) || h.remote == nil {
		return err
	}
	up, missing, _ := h.node.Names()
	if e, ok := h.roster.Find(core.AgentID(name)); ok && e.Hub != "" {
		up, missing = []string{e.Hub}, nil
	}
	for _, hub := range up {
		_, there := restartMethod.Ask(ctx, h, hub, p, name)
		if there == nil || !isElsewhere(there) {
			return there
		}
		if core.AsFault(there).Code == core.CodeUnknownAgent {
			err = there
		}
	}
	if len(missing) > 0 {
		return core.NewFault(core.CodeUnreachable, "no hub that is here has %q in its settings, and these are not here: %s", name, strings.Join(missing, ", "))
	}
	return err
}

// isElsewhere reports whether a hub does not run the agent or the pack: another one may.
func isElsewhere(err error) bool {
	code := core.AsFault(err).Code
	return code == core.CodeUnknownAgent || code == core.CodeUnsupported
}

func (h *Hub) restart(name string) error {
	if h.restartChild == nil {
		return core.NewFault(core.CodeUnsupported, "this hub runs no agents or packs itself")
	}
	return h.restartChild(name)
}
