package main

import (
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/web"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// translations are what the dialects declare of themselves, in the order of the
// documentation.
func translations() []core.Translation {
	return []core.Translation{coven.Translation, parallax.Translation, pi.Translation, acp.Translation}
}

// The limits of the dialects on the wire (design, ruling 5) and their keepalive.
const (
	parallaxBytes = parallax.DefaultMaxMessageBytes
	acpBytes      = acp.DefaultMaxEnvelopeBytes
	piBytes       = 10 << 20
	pingEvery     = 30 * time.Second
	pingTimeout   = 10 * time.Second
)

var wsLink = link.Options{PingEvery: pingEvery, PingTimeout: pingTimeout}

// open makes the doors of the hub and opens them: here, and nowhere else,
// transports and dialects meet.
func (s *Service) open(listeners map[string]net.Listener) {
	if l := listeners["grpc-addr"]; l != nil {
		s.grpc = grpcserver.New(grpcserver.Options{
			OnPanic: func(method string, value any, stack []byte) {
				s.log.Error("a handler panicked", "method", method, "panic", value, "stack", string(stack))
			},
			OnRefused: func(remote net.Addr) { s.log.Warn("too many connections: one was closed", "remote", remote.String()) },
		})
		s.grpc.Register(&wire.CovenControl_ServiceDesc, coven.NewService(s.serveCoven))
		s.run("gRPC", func() error { return s.grpc.Serve(l) })
	}
	if s.socket != nil {
		s.run("Unix socket", s.acceptPi)
	}
	webOptions := web.Options{
		Hosts: s.config.Hosts, Origins: s.config.Origins, HostsSetting: "the setting hosts", OriginsSetting: "the setting origins",
		OnPanic: func(r *http.Request, value any, stack []byte) {
			s.log.Error("a handler panicked", "path", r.URL.Path, "panic", value, "stack", string(stack))
		},
		OnDenied: func(r *http.Request, status int, detail string) {
			s.log.Info("a request was refused", "path", r.URL.Path, "status", status, "detail", detail)
		},
		OnRefused: func(remote net.Addr) { s.log.Warn("too many connections: one was closed", "remote", remote.String()) },
	}
	if l := listeners["http-addr"]; l != nil {
		w := web.New(webOptions)
		s.mountHTTP(w.Router())
		s.servers = append(s.servers, w)
		s.run("HTTP", func() error { return w.Serve(l) })
	}
	if l := listeners["pi-addr"]; l != nil {
		w := web.New(webOptions)
		w.Router().Handle("/*", http.HandlerFunc(s.servePi))
		s.servers = append(s.servers, w)
		s.run("pi-server", func() error { return w.Serve(l) })
	}
}

// acceptPi serves pi-server, a JSON object a line, to whoever connects to the
// Unix socket.
func (s *Service) acceptPi() error {
	for {
		conn, err := s.socket.Accept()
		if err != nil {
			return err
		}
		s.hold(func() { s.pi.Serve(s.ctx, conn, pi.ConnOptions{Transport: pi.Stdio}) })
	}
}

func (s *Service) mountHTTP(r chi.Router) {
	s.acp = acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers, HubName: "dragoman", Log: s.log}})
	r.Get("/ws/agent", s.serveParallax)
	r.Get("/ws/acp", s.serveACP)
	r.Get("/ws/pi", s.servePi)
	r.Method(http.MethodPost, "/acp", s.acp)
	r.Method(http.MethodGet, "/acp", s.acp)
	r.Mount("/v1", rest.New(s.hub, rest.Options{
		Principal: func(*http.Request) (core.Principal, error) {
			return core.Principal{ID: "local", Dialect: "rest", Operator: true}, nil
		},
		Version: version, Log: s.log,
	}))
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { plainText(w, http.StatusOK, "ok\n") })
	r.Get("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.draining.Load() {
			plainText(w, http.StatusServiceUnavailable, "stopping\n")
			return
		}
		plainText(w, http.StatusOK, "ready\n")
	})
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
	reason := coven.Serve(s.ctx, s.hub, conn, coven.Options{
		ServerID: s.hub.ID(), DefaultMaxConcurrent: s.config.Coven.MaxConcurrent, Logger: s.log,
	})
	return grpcserver.Status(reason)
}

func (s *Service) serveParallax(w http.ResponseWriter, r *http.Request) {
	id := core.NewID()
	conn := s.upgrade(w, r, ws.AcceptOptions{
		Limits: ws.Limits{ReadLimit: parallaxBytes, Oversize: ws.Reject},
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
	agent := r.Header.Get("X-Agent-Id")
	s.hold(func() {
		parallax.Serve(s.ctx, s.hub, conn, parallax.Options{AgentID: agent, Capabilities: able, ConnectionID: id, Link: wsLink, Log: s.log})
	})
}

func (s *Service) serveACP(w http.ResponseWriter, r *http.Request) {
	conn := s.upgrade(w, r, ws.AcceptOptions{Limits: ws.Limits{ReadLimit: acpBytes, Oversize: ws.Reject}})
	if conn == nil {
		return
	}
	id := r.Header.Get("X-Agent-Id")
	if id == "" {
		id = r.URL.Query().Get("agent_id")
	}
	s.hold(func() {
		acp.Serve(s.ctx, s.hub, conn, acp.Options{AgentID: core.AgentID(id), Peers: s.peers, HubName: "dragoman", Link: wsLink, Log: s.log})
	})
}

func (s *Service) servePi(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		plainText(w, http.StatusUpgradeRequired, "Upgrade Required")
		return
	}
	snapshots := pi.SnapshotsAll
	if r.URL.Query().Get("snapshots") == "none" {
		snapshots = pi.SnapshotsNone
	}
	conn := s.upgrade(w, r, ws.AcceptOptions{
		Limits:          ws.Limits{ReadLimit: piBytes, Oversize: ws.Reject, AcceptBinary: true},
		EchoSubprotocol: true,
	})
	if conn == nil {
		return
	}
	s.hold(func() { s.pi.Serve(s.ctx, conn, pi.ConnOptions{Transport: pi.WebSocket, Snapshots: snapshots}) })
}

// upgrade makes a WebSocket of a request, or answers it and returns nil.
func (s *Service) upgrade(w http.ResponseWriter, r *http.Request, o ws.AcceptOptions) *ws.Conn {
	o.Hosts, o.Origins = s.config.Hosts, s.config.Origins
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
