package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// handlerGrace is how long Stop waits for handlers whose connections it has cut.
const handlerGrace = 5 * time.Second

// Server is a gRPC server. Make one with New.
type Server struct {
	opts Options
	// largest is the most that a request of any method may have.
	largest int
	grpc    *grpc.Server
	health  *health.Server

	// stopping ends when Stop begins.
	stopping context.Context //nolint:containedctx // it is the life of the server, which ends with Stop
	stop     context.CancelFunc

	mu     sync.Mutex
	crowds []*crowd
}

// New returns a server that answers grpc.health.v1 and reflection and to which
// further services can be registered until it serves.
func New(o Options) *Server {
	s := &Server{opts: o.withDefaults(), health: health.NewServer()}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.largest = s.opts.largest()
	s.grpc = grpc.NewServer(append(s.opts.server(), grpc.MaxRecvMsgSize(s.largest), grpc.ForceServerCodecV2(newCodec()), grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream))...)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s
}

// Register adds a service and reports it as serving. It panics, as grpc-go does,
// when impl does not implement the service or the server serves already.
func (s *Server) Register(desc *grpc.ServiceDesc, impl any) {
	s.grpc.RegisterService(desc, impl)
	s.health.SetServingStatus(desc.ServiceName, healthpb.HealthCheckResponse_SERVING)
}

// RegisterService is Register under the name by which generated code knows it:
// a Server is a grpc.ServiceRegistrar.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) { s.Register(desc, impl) }

// MaxMessageBytes returns the largest message that the server reads or writes.
func (s *Server) MaxMessageBytes() int { return s.opts.MaxMessageBytes }

// Serve accepts connections until l fails, whose error it returns, or until Stop,
// upon which it returns nil once everything has ended. It closes l. It may be
// called for several listeners; MaxConnections holds for each.
func (s *Server) Serve(l net.Listener) error {
	c := &crowd{Listener: l, limit: s.opts.MaxConnections, room: s.opts.AdmitConn, refused: s.opts.OnRefused}
	s.mu.Lock()
	s.crowds = append(s.crowds, c)
	s.mu.Unlock()
	err := s.grpc.Serve(c)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Stop reports every service as not serving, accepts no more calls and waits for
// those under way. Whoever owns a stream should be closing it at the same time.
// When ctx ends first, the connections are cut, and the error says so; handlers
// have a further five seconds to notice.
func (s *Server) Stop(ctx context.Context) error {
	s.health.Shutdown()
	s.stop()
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		s.grpc.GracefulStop()
	}()
	select {
	case <-graceful:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for _, c := range s.crowds {
		c.disperse()
	}
	s.mu.Unlock()
	s.grpc.Stop()
	timer := time.NewTimer(handlerGrace)
	defer timer.Stop()
	select {
	case <-graceful:
		return fmt.Errorf("stop grpc: calls were cut off: %w", ctx.Err())
	case <-timer.C:
		return fmt.Errorf("stop grpc: a handler still runs %v after its connection was cut: %w", handlerGrace, ctx.Err())
	}
}
