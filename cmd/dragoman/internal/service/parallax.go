package service

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	gatewaywire "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	registrywire "github.com/dragoman-hub/dragoman/proto/parallax/registry"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// parallaxState is shared by all Parallax connections.
type parallaxState struct {
	traffic *parallax.Traffic
	refused parallax.Refusals
	// signing has the secrets that agents sign with.
	signing atomic.Pointer[map[core.AgentID][]byte]
}

// mountParallax serves agents over WebSocket and gRPC.
func (s *Service) mountParallax(l *listeners) {
	if l.grpc != nil {
		l.grpc.Register(&gatewaywire.AgentGateway_ServiceDesc, parallax.NewGatewayService(s.serveGateway))
		l.grpc.Register(&registrywire.Registry_ServiceDesc, s.newRegistry())
	}
	if l.http == nil {
		return
	}
	l.http.Get(ParallaxPath, s.serveParallax)
	// The answer to a request without a valid token is that of the Parallax page.
	l.http.refuse(ParallaxPath, func(w http.ResponseWriter, err error) {
		text, _ := json.Marshal(map[string]string{"error": core.AsFault(err).Message}) // strings always encode
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write(text) // the peer may have gone
	})
}

// parallaxOptions returns the options of all Parallax agents, on any transport.
func (s *Service) parallaxOptions(ctx context.Context, id string) parallax.Options {
	c := s.config.Parallax
	return parallax.Options{
		Principal: principalOf(ctx, core.Principal{}), ConnectionID: id, TaskTimeout: c.TaskTimeout, HeartbeatInterval: c.HeartbeatInterval,
		MaxMessageBytes: c.MessageBytes, MaxMessagesPerSecond: orNever(c.MessagesPerSecond), KeepTasks: c.KeepTasks,
		Secret: s.signingSecret, RequireSignature: c.RequireSignatures,
		Traffic: s.parallax.traffic, Log: s.log,
	}
}

func (s *Service) serveGateway(stream gatewaywire.AgentGateway_ConnectServer) error {
	conn, err := grpcserver.Accept(s.grpc, stream)
	if err != nil {
		return err
	}
	return grpcserver.Status(parallax.ServeGateway(s.ctx, s.hub, conn, s.gatewayOptions(stream.Context())))
}

// gatewayOptions returns the options of the agent that makes the call of ctx.
func (s *Service) gatewayOptions(ctx context.Context) *parallax.GatewayOptions {
	opts := &parallax.GatewayOptions{Options: s.parallaxOptions(ctx, core.NewID()), Refusals: &s.parallax.refused}
	opts.MaxMessageBytes = grpcserver.DefaultMaxMessageBytes
	opts.Frames = func(messageOf func([]byte) proto.Message) *frame.Ring {
		return s.frames.Connect(parallax.Dialect, func(text any) []byte {
			if m := messageOf(text.([]byte)); m != nil {
				return protoJSON(m)
			}
			return nil
		})
	}
	if from, ok := peer.FromContext(ctx); ok {
		opts.Address, _, _ = net.SplitHostPort(from.Addr.String()) // "" if the address has no port
	}
	return opts
}

func (s *Service) serveParallax(w http.ResponseWriter, r *http.Request) {
	c, id := s.config.Parallax, core.NewID()
	conn := s.upgrade(w, r, ws.AcceptOptions{
		Limits: ws.Limits{ReadLimit: c.MessageBytes, Oversize: ws.Reject},
		Header: http.Header{"X-Connection-Id": {id}},
	})
	if conn == nil {
		return
	}
	var capabilities []string
	for c := range strings.SplitSeq(r.Header.Get("X-Agent-Capabilities"), ",") {
		if c = strings.TrimSpace(c); c != "" {
			capabilities = append(capabilities, c)
		}
	}
	opts := s.parallaxOptions(r.Context(), id)
	opts.AgentID, opts.Capabilities, opts.Link = r.Header.Get("X-Agent-Id"), capabilities, s.webSocketLink()
	opts.Trace = core.TraceOf(r.Header)
	opts.Link.Frames = s.frames.Connect(parallax.Dialect, nil)
	s.hold(func() { parallax.Serve(s.ctx, s.hub, conn, &opts) })
}

// ParallaxPath is the WebSocket path of Parallax agents.
const ParallaxPath = "/ws/agent"
