package pi

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// actAs returns a session of the hub in the name of the principal. The caller closes it.
func (s *Server) actAs(p core.Principal) *hub.Session {
	return s.hub.Connect(hub.Identity{Principal: p, Dialect: Name, Deadline: s.opts.Commands.PromptTimeout})
}

// requester returns the principal of a client's tasks. On an open hub a client is an operator
// in what it does itself, but not in what agents do for its tasks.
func requester(p core.Principal) core.Principal {
	p.Operator = p.Operator && p.Authenticated
	return p
}

// redacted replaces a path that a client may not know.
const redacted = "[redacted]"

// journalPath returns the path of the journal, redacted unless c may know it.
func (s *Server) journalPath(c *connection) string {
	if !c.principal.Operator {
		return redacted
	}
	return s.opts.Commands.JournalPath
}
