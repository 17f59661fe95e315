package main

import (
	"context"
	"net"

	"google.golang.org/grpc/peer"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
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
	opts := parallax.GatewayOptions{Options: s.parallaxOptions(stream.Context(), core.NewID()), Refusals: &s.refused}
	opts.MaxMessageBytes = grpcserver.DefaultMaxMessageBytes
	if from, ok := peer.FromContext(stream.Context()); ok {
		opts.Address, _, _ = net.SplitHostPort(from.Addr.String()) // where there is no port there is one address
	}
	return grpcserver.Status(parallax.ServeGateway(s.ctx, s.hub, conn, opts))
}
