package service

import (
	"crypto/tls"
	"maps"
	"math"
	"net"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/web"
)

// listeners are what dialects are mounted on. A listener without an address is nil.
type listeners struct {
	grpc *grpcserver.Server
	http *httpListener
	pi   chi.Router // pi-server's own address
}

// httpListener is a router whose paths need a token unless they are open.
type httpListener struct {
	chi.Router
	public   []string
	refusals map[string]refusal
}

// refusal answers a request without a valid token in the error format of its path.
type refusal func(w http.ResponseWriter, err error)

// open makes paths need no token; one that ends with a slash includes all paths below it, except
// for "/", which is the one page.
func (h *httpListener) open(paths ...string) { h.public = append(h.public, paths...) }

// isOpen reports whether a path needs no token.
func (h *httpListener) isOpen(path string) bool {
	for _, p := range h.public {
		if matches(p, path) {
			return true
		}
	}
	return false
}

// refuse sets the refusal of a path, or of all paths below it if it ends with a slash.
func (h *httpListener) refuse(path string, how refusal) { h.refusals[path] = how }

// refusalAt returns the refusal of a path.
func (h *httpListener) refusalAt(path string) refusal {
	for p, how := range h.refusals {
		if matches(p, path) {
			return how
		}
	}
	return func(w http.ResponseWriter, err error) {
		why := core.AsFault(err)
		web.Problem(w, http.StatusUnauthorized, string(why.Code), why.Message)
	}
}

func matches(pattern, path string) bool {
	return pattern == path || pattern != "/" && strings.HasSuffix(pattern, "/") && strings.HasPrefix(path, pattern)
}

// listen mounts every dialect on the bound listeners, by their settings, and serves them.
func (s *Service) listen(bound map[string]net.Listener) {
	for name, l := range bound {
		bound[name] = acceptor{l, s.refusals}
	}
	var on listeners
	var serve []func()
	if l := bound["grpc_addr"]; l != nil {
		s.grpc = s.newGRPC()
		on.grpc = s.grpc
		serve = append(serve, func() { s.run("gRPC", func() error { return s.grpc.Serve(l) }) })
	}
	if l := bound["http_addr"]; l != nil {
		w := s.newWeb(alwaysAnswered, consolePages...)
		on.http = &httpListener{Router: w.Router(), refusals: map[string]refusal{}}
		on.http.Use(s.authenticate(on.http, false))
		s.mountHealth(on.http)
		on.http.mountConsole()
		on.http.Method(http.MethodGet, MetricsPath, s.forOperators(s.metricsHandler()))
		on.http.NotFound(nothingHere)
		serve = append(serve, func() { s.run("HTTP", func() error { return w.Serve(l) }) })
	}
	if l := bound["pi_addr"]; l != nil {
		w := s.newWeb(nil)
		on.pi = w.Router()
		on.pi.Use(s.authenticate(&httpListener{}, true))
		serve = append(serve, func() { s.run("pi-server", func() error { return w.Serve(l) }) })
	}
	for _, d := range Dialects() {
		if d.Mount != nil {
			d.Mount(s, &on)
		}
	}
	s.endpoints = on.endpoints()
	if on.http != nil && s.member != nil {
		s.hostHTTP(on.http)
	}
	for _, start := range serve {
		start()
	}
}

func (s *Service) newGRPC() *grpcserver.Server {
	large := map[string]int{}
	for _, d := range Dialects() {
		maps.Copy(large, d.LargeMessages)
	}
	c := s.config.GRPC
	admit := s.admit
	if s.auth.Open() {
		admit = nil // and no connection has to authenticate
	}
	return grpcserver.New(grpcserver.Options{
		MaxConnections: c.Connections, Larger: large, Admit: admit, TLS: s.tls.config(tls.VersionTLS13, "h2"), OnUnauthenticated: s.unauthenticated,
		PingEvery: c.PingInterval, PingTimeout: c.PingTimeout,
		OnPanic: func(method string, value any, stack []byte) {
			s.log.Error("a handler panicked", "method", method, "panic", value, "stack", string(stack))
		},
		OnRefused: s.tooMany("grpc.connections"), AdmitConn: s.files.admitted,
	})
}

// newWeb returns an HTTP server. It answers the paths in always even beyond the connection
// limit. A link on another site may open its pages.
func (s *Service) newWeb(always []string, pages ...string) *web.Server {
	c := s.config
	strangers := 0
	if !s.auth.Open() {
		strangers = max(c.HTTP.Connections/16, 16)
	}
	w := web.New(web.Options{
		TLS: s.tls.config(tls.VersionTLS12, "http/1.1"), MaxUnauthenticated: strangers, OnUnauthenticated: s.unauthenticated,
		Hosts: c.Hosts, Origins: c.Origins, Pages: pages, HostsSetting: "the setting hosts", OriginsSetting: "the setting origins",
		NoHead: []string{ACPPath, mcp.Path, mcp.Path + "/"},
		// Mounted handlers have limits of their own and name the settings.
		MaxConnections: c.HTTP.Connections, MaxBodyBytes: math.MaxInt64,
		OnPanic: func(r *http.Request, value any, stack []byte) {
			s.log.Error("a handler panicked", "path", pathOf(r), "panic", value, "stack", string(stack))
		},
		OnDenied: func(r *http.Request, status int, detail string) {
			s.log.Info("a request was refused", "path", pathOf(r), "status", status, "detail", detail)
		},
		OnRefused: s.tooMany("http.connections"), Admit: s.files.admit, Always: always, Memory: s.hub.Memory(),
	})
	s.servers = append(s.servers, w)
	return w
}

// tooMany logs a connection that is refused because of a setting.
func (s *Service) tooMany(setting string) func(remote net.Addr) {
	return func(remote net.Addr) {
		s.refusals.refused("too many connections ("+setting+"): one was closed", remote)
	}
}

// unauthenticated logs a connection that was closed because it has not authenticated.
func (s *Service) unauthenticated(remote net.Addr) {
	s.refusals.refused("a connection was closed that had not authenticated: its time was over, or many others waited", remote)
}

// nothingHere answers an unknown path and names the known ones.
func nothingHere(w http.ResponseWriter, r *http.Request) {
	web.Problem(w, http.StatusNotFound, string(core.CodeUnsupported), "nothing is at "+r.URL.Path+
		": / is the console, /v1 REST (its document /v1/openapi.json), /ws/agent Parallax, /ws/acp and /acp ACP, /ws/pi pi-server, /ws/editor editors, /mcp MCP, /a2a/{agent} A2A, /metrics Prometheus, /healthz and /readyz the health (/health and /health/ready as coven-gateway tells it)")
}

func plainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the peer may have gone
}
