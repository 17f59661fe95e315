package service

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	gatewaywire "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	registrywire "github.com/dragoman-hub/dragoman/proto/parallax/registry"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/stdio"
	"github.com/dragoman-hub/dragoman/transports/web"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// Translations are what the dialects declare of themselves, in the order of the
// documentation.
func Translations() []core.Translation {
	return []core.Translation{coven.Translation, parallax.Translation, pi.Translation, acp.Translation}
}

// agentDialects are those that agents speak.
func agentDialects() (names []string) {
	for _, t := range Translations() {
		if t.FromAgent != nil {
			names = append(names, t.Dialect)
		}
	}
	return names
}

// webSocketLink bounds the WebSockets of a hub.
func webSocketLink(c config.WebSocket) link.Options {
	return link.Options{PingEvery: c.PingInterval, PingTimeout: c.PingTimeout, WriteTimeout: c.WriteTimeout}
}

// open makes the doors of the hub and opens them: here, and nowhere else,
// transports and dialects meet.
func (s *Service) open(listeners map[string]net.Listener) {
	c := s.config
	tooMany := func(setting string) func(net.Addr) {
		return func(remote net.Addr) {
			s.refusals.refused("too many connections ("+setting+"): one was closed", remote)
		}
	}
	for name, l := range listeners {
		listeners[name] = loudListener{l, s.refusals}
	}
	if l := listeners["grpc_addr"]; l != nil {
		s.grpc = grpcserver.New(grpcserver.Options{
			MaxConnections: c.GRPC.Connections, Larger: map[string]int{wire.PackService_ToolResult_FullMethodName: coven.MaxResultBytes},
			Admit:     s.admit,
			PingEvery: c.GRPC.PingInterval, PingTimeout: c.GRPC.PingTimeout, MinClientPing: c.GRPC.MinClientPing,
			OnPanic: func(method string, value any, stack []byte) {
				s.log.Error("a handler panicked", "method", method, "panic", value, "stack", string(stack))
			},
			OnRefused: tooMany("grpc.connections"), AdmitConn: s.files.admitted,
		})
		s.grpc.Register(&wire.CovenControl_ServiceDesc, coven.NewService(s.serveCoven))
		clients := coven.NewClientService(s.hub, coven.ClientOptions{Deadline: c.Coven.Deadline, RememberFor: c.Coven.Remember, Logger: s.log, Principal: s.covenClient}, s.serveCovenClient)
		s.grpc.Register(&wire.ClientService_ServiceDesc, clients)
		s.grpc.Register(&wire.PackService_ServiceDesc, coven.NewPackService(s.hub, s.servePack))
		s.grpc.Register(&gatewaywire.AgentGateway_ServiceDesc, parallax.NewGatewayService(s.serveGateway))
		s.grpc.Register(&registrywire.Registry_ServiceDesc, s.newRegistry())
		s.run("gRPC", func() error { return s.grpc.Serve(l) })
	}
	if s.socket != nil {
		s.run("Unix socket", s.acceptPi)
	}
	webOptions := web.Options{
		Hosts: c.Hosts, Origins: c.Origins, HostsSetting: "the setting hosts", OriginsSetting: "the setting origins",
		// What is mounted has limits of its own, and says which setting moves them.
		MaxConnections: c.HTTP.Connections, MaxBodyBytes: math.MaxInt64,
		OnPanic: func(r *http.Request, value any, stack []byte) {
			s.log.Error("a handler panicked", "path", pathOf(r), "panic", value, "stack", string(stack))
		},
		OnDenied: func(r *http.Request, status int, detail string) {
			s.log.Info("a request was refused", "path", pathOf(r), "status", status, "detail", detail)
		},
		OnRefused: tooMany("http.connections"), Admit: s.files.admit,
	}
	if l := listeners["http_addr"]; l != nil {
		options := webOptions
		options.Always = []string{HealthPath, ReadyPath, gatewayHealth, gatewayReady}
		w := web.New(options)
		w.Router().Use(s.besides(openPath))
		s.mountHTTP(w.Router())
		s.servers = append(s.servers, w)
		s.run("HTTP", func() error { return w.Serve(l) })
	}
	if l := listeners["pi_addr"]; l != nil {
		w := web.New(webOptions)
		w.Router().Use(s.authenticate)
		w.Router().Handle("/*", http.HandlerFunc(s.servePi))
		s.servers = append(s.servers, w)
		s.run("pi-server", func() error { return w.Serve(l) })
	}
}

// ServeStdio serves pi-server to the one peer behind local, which is told to leave when
// the service stops. The channel is closed once it has gone.
func (s *Service) ServeStdio(local *stdio.Conn) (gone <-chan struct{}) {
	ended := make(chan struct{})
	s.conns.Go(func() {
		defer close(ended)
		reason := s.pi.Serve(s.ctx, local, pi.ConnOptions{
			Principal: core.Principal{ID: "stdio"}, Transport: pi.Stdio, Snapshots: s.snapshots, Lifecycle: s.lifecycle,
		})
		s.log.Info("the peer on stdin and stdout has gone", "reason", reason.Error())
	})
	return ended
}

// acceptPi serves pi-server, a JSON object a line, to whoever connects to the
// Unix socket.
func (s *Service) acceptPi() error {
	for {
		conn, err := s.socket.Accept()
		switch {
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			s.refusals.refused("a connection could not be accepted: "+client.Reason(err), &net.UnixAddr{Name: s.socket.Path(), Net: "unix"})
			select {
			case <-time.After(100 * time.Millisecond): // as net/http does
			case <-s.ctx.Done():
			}
			continue
		case err != nil:
			return err
		}
		s.hold(func() {
			s.pi.Serve(s.ctx, conn, pi.ConnOptions{Transport: pi.Stdio, Snapshots: s.snapshots, Lifecycle: s.lifecycle})
		})
	}
}

func (s *Service) mountHTTP(r chi.Router) {
	s.acp = acp.NewHTTP(s.hub, acp.HTTPOptions{
		Session: s.acpOptions(context.Background(), ""), Idle: s.config.ACP.KeepResults, MailboxBytes: s.config.ACP.MailboxBytes,
		Identify: func(r *http.Request) (core.Principal, core.AgentID, error) {
			return principalOf(r.Context(), core.Principal{}), "", nil
		},
	})
	r.Get(ParallaxPath, s.serveParallax)
	r.Get("/ws/acp", s.serveACP)
	r.Get("/ws/pi", s.servePi)
	r.Handle(ACPPath, s.acp)
	r.Mount("/v1", rest.New(s.hub, rest.Options{
		Principal: func(r *http.Request) (core.Principal, error) {
			return principalOf(r.Context(), core.Principal{ID: "local", Dialect: "rest", Operator: true}), nil
		},
		Version: Version, Addresses: s.bound.reachedBy, Log: s.log,
		Deadline: s.config.REST.Deadline, MaxBodyBytes: s.config.REST.BodyBytes, DropTasks: !s.config.REST.KeepTasks,
	}))
	s.mountControl(r)
	s.mountMCP(r)
	r.Method(http.MethodGet, "/metrics", s.metricsHandler())
	r.NotFound(nothingHere)
	r.Get(HealthPath, func(w http.ResponseWriter, _ *http.Request) { plainText(w, http.StatusOK, "ok\n") })
	r.Get(ReadyPath, s.serveReady)
	s.mountGatewayHealth(r)
}

// Where a program asks for the health of the hub. It is told even when there is no room
// for another connection.
const (
	HealthPath = "/healthz"
	ReadyPath  = "/readyz"
)

// nothingHere answers where the hub has no door, and tells of those that it has.
func nothingHere(w http.ResponseWriter, r *http.Request) {
	web.Problem(w, http.StatusNotFound, string(core.CodeUnsupported), "nothing is at "+r.URL.Path+
		": /v1 is REST (its document /v1/openapi.json), /ws/agent and /api Parallax, /ws/acp and /acp ACP, /ws/pi pi-server, /mcp MCP, /metrics Prometheus, /healthz and /readyz the health (/health and /health/ready as coven-gateway tells it)")
}

func plainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the peer may have gone
}

func (s *Service) serveCoven(stream wire.CovenControl_AgentStreamServer) error {
	conn, err := grpcserver.Accept(s.grpc, stream)
	if err != nil {
		return err
	}
	return grpcserver.Status(coven.Serve(s.ctx, s.hub, conn, s.covenOptions(stream.Context())))
}

// covenOptions are those of the agent whose call ctx is of.
func (s *Service) covenOptions(ctx context.Context) *coven.Options {
	c := s.config.Coven
	return &coven.Options{
		ServerID: s.hub.ID(), DefaultMaxConcurrent: c.MaxConcurrent, Deadline: c.Deadline, OrphanGrace: c.OrphanGrace, KeepTasks: c.KeepTasks, Logger: s.log,
		RegisterTimeout: c.RegisterTimeout, MaxToolCalls: c.ToolCalls, Secrets: s.secrets.of, Principal: principalOf(ctx, core.Principal{}),
		MCPEndpoint: s.mcpEndpoint(ctx), MCPToken: s.mcp.Issue,
	}
}

func (s *Service) servePack(m *wire.PackManifest, stream wire.PackService_RegisterServer) error {
	accept := func() (coven.PackConn, error) { return grpcserver.AcceptPush(s.grpc, stream) }
	return grpcserver.Status(coven.ServePack(s.ctx, s.hub, m, accept, coven.Options{Logger: s.log, Principal: principalOf(stream.Context(), core.Principal{})}))
}

// covenClient is who calls as a client of Coven.
func (s *Service) covenClient(ctx context.Context) (core.Principal, error) {
	p := principalOf(ctx, core.Principal{ID: "client", Operator: true})
	p.Dialect = coven.Name
	return p, nil
}

func (s *Service) serveCovenClient(stream wire.ClientService_StreamEventsServer, serve coven.ServeClient) error {
	conn, err := grpcserver.AcceptPush(s.grpc, stream)
	if err != nil {
		return err
	}
	return grpcserver.Status(serve(s.ctx, conn))
}

// ACPPath is where peers of ACP post envelopes, and read what arrives for them.
const ACPPath = "/acp"

// ParallaxPath is where agents of Parallax connect.
const ParallaxPath = "/ws/agent"

func (s *Service) serveParallax(w http.ResponseWriter, r *http.Request) {
	c, id := s.config.Parallax, core.NewID()
	conn := s.upgrade(w, r, ws.AcceptOptions{
		Limits: ws.Limits{ReadLimit: c.MessageBytes, Oversize: ws.Reject},
		Header: http.Header{"X-Connection-Id": {id}},
	})
	if conn == nil {
		return
	}
	var able []string
	for c := range strings.SplitSeq(r.Header.Get("X-Agent-Capabilities"), ",") {
		if c = strings.TrimSpace(c); c != "" {
			able = append(able, c)
		}
	}
	opts := s.parallaxOptions(r.Context(), id)
	opts.AgentID, opts.Capabilities, opts.Link = r.Header.Get("X-Agent-Id"), able, webSocketLink(s.config.WebSocket)
	s.hold(func() { parallax.Serve(s.ctx, s.hub, conn, opts) })
}

func (s *Service) serveACP(w http.ResponseWriter, r *http.Request) {
	id, asked := r.Header.Get("X-Agent-Id"), r.URL.Query().Get("agent_id")
	if id != "" && asked != "" && id != asked {
		plainText(w, http.StatusForbidden, "X-Agent-Id and agent_id differ: send one identity\n")
		return
	}
	conn := s.upgrade(w, r, ws.AcceptOptions{Limits: ws.Limits{ReadLimit: s.config.ACP.EnvelopeBytes, Oversize: ws.Reject}})
	if conn == nil {
		return
	}
	opts := s.acpOptions(r.Context(), core.AgentID(cmp.Or(id, asked)))
	s.hold(func() { acp.Serve(s.ctx, s.hub, conn, opts) })
}

func (s *Service) acpOptions(ctx context.Context, id core.AgentID) acp.Options {
	c := s.config.ACP
	return acp.Options{
		AgentID: id, Principal: principalOf(ctx, core.Principal{}), Peers: s.peers, HubName: "dragoman", MaxEnvelopeBytes: c.EnvelopeBytes,
		Deadline: c.Deadline, DelegateDeadline: c.DelegateDeadline, KeepTasks: c.KeepTasks,
		Link: webSocketLink(s.config.WebSocket), Log: s.log,
	}
}

func (s *Service) servePi(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		plainText(w, http.StatusUpgradeRequired, "Upgrade Required")
		return
	}
	asked := r.URL.Query()
	snapshots, err := pi.ParseSnapshots(cmp.Or(asked.Get("snapshots"), s.config.Pi.Snapshots))
	lifecycle, wrong := pi.ParseLifecycle(cmp.Or(asked.Get("lifecycle"), s.config.Pi.Lifecycle))
	if err = cmp.Or(err, wrong); err != nil {
		plainText(w, http.StatusBadRequest, core.AsFault(err).Message+"\n")
		return
	}
	conn := s.upgrade(w, r, ws.AcceptOptions{
		Limits:          ws.Limits{ReadLimit: s.config.Pi.MessageBytes, Oversize: ws.Reject, AcceptBinary: true},
		EchoSubprotocol: true,
	})
	if conn == nil {
		return
	}
	principal := principalOf(r.Context(), core.Principal{})
	s.hold(func() {
		s.pi.Serve(s.ctx, conn, pi.ConnOptions{Transport: pi.WebSocket, Snapshots: snapshots, Lifecycle: lifecycle, Principal: principal})
	})
}

// upgrade makes a WebSocket of a request, or answers it and returns nil. A hub that is
// stopping makes none.
func (s *Service) upgrade(w http.ResponseWriter, r *http.Request, o ws.AcceptOptions) *ws.Conn {
	if s.draining.Load() {
		plainText(w, http.StatusServiceUnavailable, "Server is shutting down\n") // as pi clients know it
		return nil
	}
	if o.Hosts, o.Origins = s.config.Hosts, s.config.Origins; len(o.Hosts) > 0 {
		o.Hosts = append(slices.Clip(o.Hosts), "localhost", "127.0.0.1", "::1") // they go without saying
	}
	conn, err := ws.Accept(w, r, o)
	if err != nil {
		s.log.Info("a WebSocket was refused", "path", r.URL.Path, "error", err)
		return nil
	}
	return conn
}

// hold keeps a WebSocket in a goroutine of its own, so that what the HTTP server
// holds for its request is freed. Stop waits for all of them.
func (s *Service) hold(serve func()) {
	s.gate.Lock()
	stopping := s.stopping
	if !stopping {
		s.conns.Go(serve)
	}
	s.gate.Unlock()
	if stopping {
		serve() // the context has ended: the peer is told, and that is all
	}
}
