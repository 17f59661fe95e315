package pi

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// What pi decides alone of who may do what.

// serverPrincipal is who follows every run, for the sessions' own sake.
func serverPrincipal() core.Principal {
	return core.Principal{ID: "pi-server", Dialect: Name, Operator: true}
}

// everything may be looked at what is filtered for a client here.
func everything() core.Principal { return core.Principal{Operator: true} }

// actAs returns a session of the hub that speaks for the principal. Sessions of pi are
// shared within their scope, so whoever may use one may steer its runs, as himself.
// The caller closes it.
func (s *Server) actAs(p core.Principal) *hub.Session {
	p.Operator = true
	return s.hub.Connect(hub.Identity{Principal: p, Dialect: Name, Deadline: s.opts.PromptTimeout})
}

// operates reports whether the client is an operator's: on an open hub everybody's is.
func (c *connection) operates() bool { return c.Scope == "" || c.principal.Operator }

// viewerOf is who looks at the tasks of a session that c makes.
func viewerOf(c *connection) core.Principal {
	return core.Principal{ID: c.Scope, Operator: c.operates()}
}

// sees reports whether who has the session may read the task.
func (ss *session) sees(task *hub.Task) bool {
	return ss.viewer.Operator || ss.viewer.ID == task.From().ID
}

// redacted stands for a path that a client is not told.
const redacted = "[redacted]"

// journalPath is where the journal is, as c may know it.
func (s *Server) journalPath(c *connection) string {
	if !c.operates() {
		return redacted
	}
	return s.opts.JournalPath
}
