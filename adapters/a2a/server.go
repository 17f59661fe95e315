package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Path is where the Server is mounted, with all paths below. It is the hub's own interface
// for clients that name the agent as tenant.
const Path = "/a2a"

// Server serves A2A clients. It is safe for concurrent use.
type Server struct {
	hub    *hub.Hub
	opts   Options
	people *people
	seen   *hub.Keys

	pushing  sync.Mutex
	pushesOf map[core.TaskID]*pushes
}

// Bounds of the messages that are recognised when they come again.
const (
	messagesEach = 4096
	messagesAll  = 65536
	messagesAge  = 300 * time.Second
)

// New returns a Server for a hub. [Server.Close] ends it.
func New(h *hub.Hub, opts Options) *Server {
	s := &Server{hub: h, opts: opts.withDefaults(), people: newPeople(h), pushesOf: map[core.TaskID]*pushes{}}
	s.seen = h.NewKeys(wire.Dialect, hub.KeysOptions{Each: messagesEach, All: messagesAll, Age: messagesAge})
	s.answerPushes()
	return s
}

// Close ends what the server does by itself. Requests end with the hub.
func (s *Server) Close() { s.people.close() }

// ServeHTTP implements http.Handler. It serves [Path], all paths below, and
// [wire.CardPath].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{server: s, w: w, r: r}
	to, ok := route(r)
	c.scope, c.tenant, c.rpc = to.agent, to.tenant, ok && !to.card && !to.keys && to.method == nil
	err := s.admit(c)
	switch {
	case err != nil:
	case !ok:
		err = wire.MethodNotFound("nothing is at " + r.URL.Path + ": POST JSON-RPC to " + Path + "/{agent}, or see " + Path + "/{agent}" + wire.CardPath)
	case to.card:
		err = s.serveCard(c)
	case to.keys && s.opts.Signer == nil:
		err = wire.MethodNotFound("cards are not signed here: the setting a2a.signing_key names the key to sign with")
	case to.keys:
		c.write(http.StatusOK, "application/jwk-set+json", s.opts.Signer.keys)
	case to.method == nil:
		err = s.serveRPC(c)
	default:
		err = s.serveREST(c, to)
	}
	if err != nil && !(errors.Is(err, context.Canceled) && r.Context().Err() != nil) { // the client is still there
		c.refuse(err)
	}
}

// admit finds out who sends a request.
func (s *Server) admit(c *call) error {
	p, err := s.opts.Principal(c.r)
	if err == nil && p.ID == "" {
		err = core.NewFault(core.CodeUnauthenticated, "the request is not authenticated: send a token")
	}
	p.Dialect = cmp.Or(p.Dialect, wire.Dialect)
	c.from = p
	return err
}

// call is one request of a client, in either binding.
type call struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	from   core.Principal
	// scope is the agent whose interface it is, "" for that of the hub. tenant is the one of
	// the path.
	scope  core.AgentID
	tenant string
	// rpc says that the binding is JSON-RPC, and id is the id of its request.
	rpc bool
	id  json.RawMessage
	// answered says that the head of the answer was sent.
	answered bool
	// items takes the items of a stream; nil for server-sent events.
	items outlet
}

// connect opens a session of the hub for a call. The caller ends it with leave. What it opens
// goes on without it.
func (c *call) connect() *hub.Session {
	return c.server.hub.Connect(hub.Identity{Principal: c.from, Dialect: wire.Dialect, Deadline: c.server.opts.Deadline, Keep: true, Checked: true, Frames: frame.RingOf(c.r.Context())})
}

func leave(s *hub.Session) {
	s.Close(core.NewFault(core.CodeUnreachable, "the HTTP request ended"))
}

// checkVersion refuses a request of another version of the protocol (section 3.6). A client
// that names none speaks 0.3.
func (c *call) checkVersion() error {
	version := cmp.Or(c.r.Header.Get(wire.VersionHeader), c.r.URL.Query().Get(wire.VersionHeader), "0.3")
	if version == wire.Version || strings.HasPrefix(version, wire.Version+".") {
		return nil
	}
	why := "The requested A2A protocol version '" + shorten(version) + "' is not supported. Supported versions: " + wire.Version
	if c.r.Header.Get(wire.VersionHeader) == "" && c.r.URL.Query().Get(wire.VersionHeader) == "" {
		why += ". A request without the header " + wire.VersionHeader + " is one of version 0.3: send " + wire.VersionHeader + ": " + wire.Version
	}
	return wire.NewError(wire.ReasonVersionNotSupported, why)
}

// extends reports whether the client activated an extension (section 3.2.6).
func (c *call) extends(uri string) bool {
	for _, header := range c.r.Header.Values(wire.ExtensionsHeader) {
		for one := range strings.SplitSeq(header, ",") {
			if strings.TrimSpace(one) == uri {
				return true
			}
		}
	}
	return false
}

func shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:cut(s, most)] + "..."
}

// agent returns the agent that a call is for: that of the interface, or the tenant. The
// result is "" only for the hub's own interface without a tenant.
func (c *call) agent(tenant string) (core.AgentID, error) {
	if c.tenant != "" && tenant != "" && c.tenant != tenant {
		return "", core.NewFault(core.CodeInvalid, "tenant: the path says %q and the request %q: send one", shorten(c.tenant), shorten(tenant))
	}
	tenant = cmp.Or(tenant, c.tenant)
	id := c.resolve(core.AgentID(tenant))
	switch scope := c.resolve(c.scope); {
	case scope == "":
		return id, nil
	case id == "" || id == scope:
		return scope, nil
	}
	return "", core.NewFault(core.CodeInvalid, "tenant: %q is not served here, this is the interface of %s: leave it out, or use that of the hub, %s", shorten(tenant), c.scope, Path)
}

// resolve returns the id of an agent that may be named by its alias.
func (c *call) resolve(id core.AgentID) core.AgentID {
	if id == "" {
		return ""
	}
	if status, ok := c.server.hub.Agent(c.from, id); ok {
		return status.ID
	}
	return id
}
