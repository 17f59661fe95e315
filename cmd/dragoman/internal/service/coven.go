package service

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// mountCoven serves agents, clients and packs of Coven over gRPC.
func (s *Service) mountCoven(l *listeners) {
	if l.grpc == nil {
		return
	}
	l.grpc.Register(&wire.CovenControl_ServiceDesc, coven.NewService(s.serveCoven))
	l.grpc.Register(&wire.ClientService_ServiceDesc, conversation.NewService(s.hub, conversation.Options{
		Deadline: s.config.Coven.Deadline, Principal: s.covenClient, Trace: traceOf,
		Frames: func() *frame.Ring { return s.frames.Connect(coven.Name, protoJSON) },
	}, s.serveCovenClient))
	l.grpc.Register(&wire.PackService_ServiceDesc, coven.NewPackService(s.hub, s.servePack, func(ctx context.Context) core.Principal { return principalOf(ctx, core.Principal{}) }))
}

func (s *Service) serveCoven(stream wire.CovenControl_AgentStreamServer) error {
	conn, err := grpcserver.Accept(s.grpc, stream)
	if err != nil {
		return err
	}
	opts := s.covenOptions(stream.Context())
	opts.Link.Frames = s.frames.Connect(coven.Name, protoJSON)
	return grpcserver.Status(coven.Serve(s.ctx, s.hub, conn, opts))
}

// covenOptions returns the options of the agent that makes the call of ctx.
func (s *Service) covenOptions(ctx context.Context) *coven.Options {
	c := s.config.Coven
	return &coven.Options{
		DefaultMaxConcurrent: c.MaxConcurrent, Deadline: c.Deadline, KeepTasks: c.KeepTasks, Logger: s.log,
		Secrets: s.covenSecrets.Of, Principal: principalOf(ctx, core.Principal{}),
		MCPEndpoint: s.mcpEndpoint(ctx), MCPToken: s.mcp.server.Issue, Link: link.Options{Memory: s.hub.Memory()},
	}
}

func (s *Service) servePack(m *wire.PackManifest, stream wire.PackService_RegisterServer) error {
	accept := func() (coven.PackConn, error) { return grpcserver.AcceptPush(s.grpc, stream) }
	return grpcserver.Status(coven.ServePack(s.ctx, s.hub, m, accept, coven.Options{
		Logger: s.log, Principal: principalOf(stream.Context(), core.Principal{}), Link: link.Options{Memory: s.hub.Memory()},
	}))
}

// covenClient returns the principal of a Coven client.
func (s *Service) covenClient(ctx context.Context) (core.Principal, error) {
	p := principalOf(ctx, core.Principal{ID: "client", Operator: true})
	p.Dialect = coven.Name
	return p, nil
}

func (s *Service) serveCovenClient(stream wire.ClientService_StreamEventsServer, serve conversation.ServeStream) error {
	conn, err := grpcserver.AcceptPush(s.grpc, stream)
	if err != nil {
		return err
	}
	return grpcserver.Status(serve(s.ctx, conn))
}
