package service

import (
	"context"
	"net"
	"net/http"

	"github.com/go-chi/chi/v5"
	"google.golang.org/grpc/peer"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/control"
	"github.com/dragoman-hub/dragoman/core"
	gatewaywire "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// parallaxOptions are what agents of Parallax have in common, whatever they come by.
func (s *Service) parallaxOptions(ctx context.Context, id string) parallax.Options {
	c := s.config.Parallax
	return parallax.Options{
		Principal: principalOf(ctx, core.Principal{}), ConnectionID: id, TaskTimeout: c.TaskTimeout, HeartbeatInterval: c.HeartbeatInterval,
		MaxMessageBytes: c.MessageBytes, MaxMessagesPerSecond: orNever(c.MessagesPerSecond), KeepTasks: c.KeepTasks,
		Secret: s.signingSecret, RequireSignature: c.RequireSignatures,
		Traffic: s.traffic, Log: s.log,
	}
}

func (s *Service) serveGateway(stream gatewaywire.AgentGateway_ConnectServer) error {
	conn, err := grpcserver.Accept(s.grpc, stream)
	if err != nil {
		return err
	}
	return grpcserver.Status(parallax.ServeGateway(s.ctx, s.hub, conn, s.gatewayOptions(stream.Context())))
}

// gatewayOptions are those of an agent that makes the call of ctx.
func (s *Service) gatewayOptions(ctx context.Context) parallax.GatewayOptions {
	opts := parallax.GatewayOptions{Options: s.parallaxOptions(ctx, core.NewID()), Refusals: &s.refused}
	opts.MaxMessageBytes = grpcserver.DefaultMaxMessageBytes
	if from, ok := peer.FromContext(ctx); ok {
		opts.Address, _, _ = net.SplitHostPort(from.Addr.String()) // where there is no port there is one address
	}
	return opts
}

// ControlPath is where the REST of a Parallax control plane is.
const ControlPath = "/api"

func (s *Service) mountControl(r chi.Router) {
	targets, err := control.ParseTargets(s.config.Parallax.WebhookTargets)
	if err != nil {
		targets = control.TargetsNone // the schema of the settings lets nothing else through
	}
	s.control = control.New(s.hub, control.Options{
		Principal: func(r *http.Request) core.Principal {
			return principalOf(r.Context(), core.Principal{ID: "local", Dialect: parallax.Dialect, Operator: true})
		},
		Deadline: s.config.REST.Deadline, MaxBodyBytes: s.config.REST.BodyBytes, Targets: targets, Log: s.log,
	})
	r.Mount(ControlPath, s.control)
}
