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

// DefaultLease is the duration of a lease unless its agent sets one.
const DefaultLease = time.Minute

// Options configure a Registry. All are required.
type Options struct {
	// Principal returns the principal of a call (promise P7).
	Principal func(context.Context) core.Principal
	// Connect returns a client of the agent at an endpoint; the Registry closes it. The
	// error is a Fault that says why the hub does not call that endpoint.
	Connect func(ctx context.Context, endpoint string) (confidence.ConfidenceAgentClient, io.Closer, error)
	// Serve starts to serve the stream of an agent that registered with the call of ctx,
	// and calls ended when the stream has ended. It returns at once. The end of ctx does
	// not end the stream.
	Serve func(ctx context.Context, stream parallax.GatewayConn, ended func())
}

// Registry is the gRPC service parallax.registry.Registry.
type Registry struct {
	pb.UnimplementedRegistryServer
	hub  *hub.Hub
	opts Options

	mu     sync.Mutex
	leases map[string]lease // by id
}

// lease is the registration of an agent.
type lease struct {
	stream    *directStream
	endpoint  string
	principal core.Principal
}

// New returns the service for a hub.
func New(h *hub.Hub, opts Options) *Registry {
	r := &Registry{hub: h, opts: opts, leases: map[string]lease{}}
	r.answerLeases()
	return r
}

// leaseID returns the id of an agent's lease, in the form of Parallax.
func leaseID(agent string) string { return "lease-" + agent }

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
	d := newDirectStream(agent, helloOf(a, ttl))
	l := lease{d, a.GetEndpoint(), r.opts.Principal(ctx)}
	id := leaseID(a.GetId())
	r.changeAnywhere(ctx, l.principal, change{Lease: id, End: true, Endpoint: l.endpoint}) // the agent registers again
	ended := make(chan struct{})
	r.opts.Serve(ctx, d, func() {
		d.wait()
		_ = conn.Close() // no call runs
		r.remove(id, d)
		close(ended)
	})
	select {
	case ack := <-d.acked:
		if !ack.GetAccepted() {
			d.stop()
			return nil, status.Error(codes.AlreadyExists, ack.GetMessage())
		}
		r.add(id, l)
		d.heartbeat() // the first, which starts the watchdog
		return &pb.RegisterResponse{Success: true, Message: "Registered", LeaseId: id}, nil
	case <-ended:
		return nil, status.Error(codes.Unavailable, "the agent was not registered: register again")
	case <-ctx.Done():
		d.stop()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// helloOf returns the hello of a registration. The hub closes an agent after three silent
// intervals, which are one lease.
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

// add adds a lease, unless its stream has ended meanwhile.
func (r *Registry) add(id string, l lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.stream.base.Err() == nil {
		r.leases[id] = l
	}
}

// remove removes the lease of a stream that has ended.
func (r *Registry) remove(id string, d *directStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leases[id].stream == d {
		delete(r.leases, id)
	}
}

// lease returns a lease of a principal that has not ended. Another principal's lease cannot
// be renewed or ended.
func (r *Registry) lease(id string, p core.Principal) (lease, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, here := r.leases[id]
	return l, here && l.stream.base.Err() == nil && l.principal.ID == p.ID && l.principal.Authenticated == p.Authenticated
}

// Renew implements [pb.RegistryServer].
func (r *Registry) Renew(ctx context.Context, in *pb.RenewRequest) (*pb.RegisterResponse, error) {
	if !r.changeAnywhere(ctx, r.opts.Principal(ctx), change{Lease: in.GetLeaseId()}) {
		return nil, status.Errorf(codes.NotFound, "this principal has no lease %q: register the agent again", in.GetLeaseId())
	}
	return &pb.RegisterResponse{Success: true, Message: "Renewed", LeaseId: in.GetLeaseId()}, nil
}

// Unregister implements [pb.RegistryServer].
func (r *Registry) Unregister(ctx context.Context, in *pb.AgentRegistration) (*pb.RegisterResponse, error) {
	if !r.changeAnywhere(ctx, r.opts.Principal(ctx), change{Lease: leaseID(in.GetId()), End: true}) {
		return nil, status.Errorf(codes.NotFound, "this principal has registered no agent %q", in.GetId())
	}
	return &pb.RegisterResponse{Success: true, Message: "Unregistered", LeaseId: leaseID(in.GetId())}, nil
}
