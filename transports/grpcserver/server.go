package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// handlerGrace is how long Stop waits for handlers after it has closed their connections.
const handlerGrace = 5 * time.Second

// Server is a gRPC server. Make one with New.
type Server struct {
	opts    Options
	grpc    *grpc.Server
	health  *health.Server
	watches atomic.Int32 // of the health
	// methods has the registered methods, and whether each takes one request.
	methods map[string]bool

	// stopping ends when Stop begins.
	stopping context.Context //nolint:containedctx // the lifetime of the server, which ends with Stop
	stop     context.CancelFunc

	mu        sync.Mutex
	listeners []*limited
}

// New returns a server with grpc.health.v1 and reflection. Further services can be
// registered until it serves.
func New(o Options) *Server {
	s := &Server{opts: o.withDefaults(), health: health.NewServer(), methods: map[string]bool{}}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.grpc = grpc.NewServer(append(s.opts.server(),
		grpc.Creds(handshake{s.opts.credentials()}), grpc.InTapHandle(s.tap), grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream))...)
	builtin := registrar(func(desc *grpc.ServiceDesc, impl any) {
		s.learn(desc)
		s.grpc.RegisterService(desc, impl)
	})
	builtin.RegisterService(s.healthDesc(), nil)
	reflection.Register(reflected{builtin, s.grpc})
	return s
}

// registrar is a grpc.ServiceRegistrar.
type registrar func(*grpc.ServiceDesc, any)

// RegisterService implements [grpc.ServiceRegistrar].
func (r registrar) RegisterService(desc *grpc.ServiceDesc, impl any) { r(desc, impl) }

// reflected registers the services of reflection, which list those of the server.
type reflected struct {
	registrar
	reflection.ServiceInfoProvider
}

// Register adds a service and reports it as serving. Like grpc-go, it panics if impl does
// not implement the service or the server already serves.
func (s *Server) Register(desc *grpc.ServiceDesc, impl any) {
	s.learn(desc)
	s.grpc.RegisterService(desc, impl)
	s.health.SetServingStatus(desc.ServiceName, healthpb.HealthCheckResponse_SERVING)
}

// Methods returns the full names of all methods, in order.
func (s *Server) Methods() (all []string) {
	for service, info := range s.grpc.GetServiceInfo() {
		for _, m := range info.Methods {
			all = append(all, "/"+service+"/"+m.Name)
		}
	}
	slices.Sort(all)
	return all
}

// RegisterService is Register, and makes Server a grpc.ServiceRegistrar.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) { s.Register(desc, impl) }

// MaxMessageBytes returns the size of the largest message that the server reads or writes.
func (s *Server) MaxMessageBytes() int { return s.opts.MaxMessageBytes }

// Serve accepts connections until l fails, whose error it returns, or until Stop; then it
// returns nil when everything has ended. It closes l. It may be called for several
// listeners; MaxConnections applies to each.
func (s *Server) Serve(l net.Listener) error {
	c := newLimited(l, &s.opts)
	s.mu.Lock()
	s.listeners = append(s.listeners, c)
	s.mu.Unlock()
	err := s.grpc.Serve(c)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Stop reports every service as not serving, accepts no more calls and waits for open ones.
// The owners of streams should close them at the same time. If ctx ends first, the
// connections are closed and an error is returned; handlers have five more seconds to end.
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
	for _, c := range s.listeners {
		c.CloseAll()
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
