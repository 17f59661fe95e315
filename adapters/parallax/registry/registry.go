package registry

import (
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/proto/parallax/confidence"
	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/registry"
)

// DefaultLease is how long a lease lasts without being renewed, unless its agent says.
const DefaultLease = time.Minute

// Options make a Registry. All are needed but the last.
type Options struct {
	// Principal is who makes a call (promise P7).
	Principal func(context.Context) core.Principal
	// Connect returns a client of the agent at an endpoint, which is closed when the
	// agent has left. The error is a Fault that says why it is not called there.
	Connect func(ctx context.Context, endpoint string) (confidence.ConfidenceAgentClient, io.Closer, error)
	// Serve holds the stream of an agent that registered by the call of ctx until it
	// ends, and then calls ended. It returns at once, and does not obey ctx.
	Serve func(ctx context.Context, stream parallax.GatewayConn, ended func())
}

// Registry is the gRPC service parallax.registry.Registry.
type Registry struct {
	pb.UnimplementedRegistryServer
	hub  *hub.Hub
	opts Options

	mu     sync.Mutex
	leases map[string]lease // by their ids
}

// lease is an agent that registered.
type lease struct {
	stream    *direct
	endpoint  string
	principal core.Principal
}

// New returns the service for a hub.
func New(h *hub.Hub, opts Options) *Registry {
	return &Registry{hub: h, opts: opts, leases: map[string]lease{}}
}

// leaseOf names the lease of an agent as Parallax does.
func leaseOf(agent string) string { return "lease-" + agent }

// Register implements [pb.RegistryServer].
func (r *Registry) Register(ctx context.Context, in *pb.RegisterRequest) (*pb.RegisterResponse, error) {
	a := in.GetAgent()
	if a.GetId() == "" {
		return nil, status.Error(codes.InvalidArgument, "agent.id: missing; send the id of the agent")
	}
	if err := core.CheckAgentID(core.AgentID(a.GetId())); err != nil {
		return nil, status.Error(codes.InvalidArgument, core.AsFault(err).Message)
	}
	agent, conn, err := r.opts.Connect(ctx, a.GetEndpoint())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "agent.endpoint: "+core.AsFault(err).Message)
	}
	ttl := cmp.Or(max(0, a.GetTtl().AsDuration()), DefaultLease)
	d := newDirect(agent, helloOf(a, ttl))
	l := lease{d, a.GetEndpoint(), r.opts.Principal(ctx)}
	id := leaseOf(a.GetId())
	if old, here := r.lease(id, l.principal); here && old.endpoint == l.endpoint {
		old.stream.leave() // it has registered again
	}
	over := make(chan struct{})
	r.opts.Serve(ctx, d, func() {
		d.ended()
		_ = conn.Close() // it has served its purpose
		r.drop(id, d)
		close(over)
	})
	select {
	case ack := <-d.acked:
		if !ack.GetAccepted() {
			d.leave()
			return nil, status.Error(codes.AlreadyExists, ack.GetMessage())
		}
		r.keep(id, l)
		d.lives() // from here on its silence counts
		return &pb.RegisterResponse{Success: true, Message: "Registered", LeaseId: id}, nil
	case <-over:
		return nil, status.Error(codes.Unavailable, "the agent could not be taken in: register again")
	case <-ctx.Done():
		d.leave()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// helloOf is a registration as the first word on a stream. The hub judges an agent by
// its silence after two and three intervals: the third is the end of its lease.
func helloOf(a *pb.AgentRegistration, ttl time.Duration) *gateway.AgentHello {
	h := &gateway.AgentHello{
		AgentId: a.GetId(), AgentName: a.GetName(), Capabilities: a.GetCapabilities(), Metadata: map[string]string{},
		HeartbeatIntervalMs: int32(min(ttl/3, 24*time.Hour) / time.Millisecond),
	}
	m := a.GetMetadata()
	for name, value := range m.GetLabels() {
		h.Metadata[name] = value
	}
	for name, value := range map[string]string{"version": m.GetVersion(), "region": m.GetRegion(), "endpoint": a.GetEndpoint()} {
		if value != "" {
			h.Metadata[name] = value
		}
	}
	return h
}

// keep notes a lease, unless its stream has ended meanwhile.
func (r *Registry) keep(id string, l lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.stream.base.Err() == nil {
		r.leases[id] = l
	}
}

// drop forgets the lease of a stream that has ended.
func (r *Registry) drop(id string, d *direct) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leases[id].stream == d {
		delete(r.leases, id)
	}
}

// lease returns a lease of a principal that has not ended: nobody lengthens or ends that
// of another.
func (r *Registry) lease(id string, p core.Principal) (lease, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, here := r.leases[id]
	return l, here && l.stream.base.Err() == nil && l.principal.ID == p.ID && l.principal.Authenticated == p.Authenticated
}

// Renew implements [pb.RegistryServer].
func (r *Registry) Renew(ctx context.Context, in *pb.RenewRequest) (*pb.RegisterResponse, error) {
	l, here := r.lease(in.GetLeaseId(), r.opts.Principal(ctx))
	if !here {
		return nil, status.Errorf(codes.NotFound, "no lease %q of yours is here: register the agent again", in.GetLeaseId())
	}
	l.stream.lives()
	return &pb.RegisterResponse{Success: true, Message: "Renewed", LeaseId: in.GetLeaseId()}, nil
}

// Unregister implements [pb.RegistryServer].
func (r *Registry) Unregister(ctx context.Context, in *pb.AgentRegistration) (*pb.RegisterResponse, error) {
	l, here := r.lease(leaseOf(in.GetId()), r.opts.Principal(ctx))
	if !here {
		return nil, status.Errorf(codes.NotFound, "no agent %q of yours has registered here", in.GetId())
	}
	l.stream.leave()
	return &pb.RegisterResponse{Success: true, Message: "Unregistered", LeaseId: leaseOf(in.GetId())}, nil
}
