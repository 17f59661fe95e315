package pi

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// actAs returns a session of the hub that speaks for the principal. The caller closes it.
func (s *Server) actAs(p core.Principal) *hub.Session {
	return s.hub.Connect(hub.Identity{Principal: p, Dialect: Name, Deadline: s.opts.Commands.PromptTimeout})
}

// requester is who a task is asked for: the client, which is an operator of an open hub
// for what it does itself, and not for what its tasks ask in its name.
func requester(p core.Principal) core.Principal {
	p.Operator = p.Operator && p.Authenticated
	return p
}

// redacted stands for a path that a client is not told.
const redacted = "[redacted]"

// journalPath is where the journal is, as c may know it.
func (s *Server) journalPath(c *connection) string {
	if !c.principal.Operator {
		return redacted
	}
	return s.opts.Commands.JournalPath
}
