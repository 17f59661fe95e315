package pi

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// act gives a command to the hub in the name of the principal. The caller notes for the frames of the client what the
// command became.
func (s *Server) act(p core.Principal, c core.Command) error {
	return s.hub.Do(hub.NoWait, hub.Identity{Principal: p, Dialect: Name}, c)
}

// requester returns the principal of a client's tasks. On an open hub a client is an operator
// in what it does itself, but not in what agents do for its tasks.
func requester(p core.Principal) core.Principal {
	p.Operator = p.Operator && p.Authenticated
	return p
}

// beginCall asks the circuit of an agent that a client is about to ask. An agent that the client
// may not see has none: the hub says that it is not here.
func (s *Server) beginCall(p core.Principal, to core.Address) (*command.AgentCall, error) {
	if !s.hub.MaySee(p, to.Agent()) {
		return nil, nil
	}
	call, err := s.circuits.Allow(to)
	if err != nil {
		s.engine.Reject(command.BreakerOpen)
	}
	return call, err
}

// circuitsFor returns the circuits of the agents that a client may see.
func (s *Server) circuitsFor(c *connection) []command.CircuitReport {
	return slices.DeleteFunc(s.circuits.Report(), func(r command.CircuitReport) bool {
		return !s.hub.MaySee(c.principal, core.AgentID(r.ProviderName))
	})
}

// shown returns the form of a task in which the session shows it; false unless all who see the session
// may read it. Its clients are of one principal, but may have come with credentials that have different
// roles.
func (ss *session) shown(t *task.Task) (*task.Task, bool) {
	h := ss.server.hub
	return h.FormFor(ss.viewer, t), h.MayRead(ss.viewer, t) && !slices.ContainsFunc(ss.subscribers, func(c *connection) bool { return !h.MayRead(c.principal, t) })
}

// isFor reports whether a client of the principal may use the session. One that shows tasks of
// others is for the rights with which they were read.
func (ss *session) isFor(c *connection) bool {
	return !ss.others || ss.viewer.Rights() == c.principal.Rights()
}

// noteOwner notes who asked for a task that the session shows.
func (ss *session) noteOwner(t *task.Task) { ss.others = ss.others || t.From().ID != ss.viewer.ID }

// redacted replaces a path that a client may not know.
const redacted = "[redacted]"

// journalPath returns the path of the journal, redacted unless c may operate the hub.
func (s *Server) journalPath(c *connection) string {
	if !s.hub.MayOperate(c.principal) {
		return redacted
	}
	return s.opts.Commands.JournalPath
}
