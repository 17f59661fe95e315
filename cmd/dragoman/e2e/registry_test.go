package e2e

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/proto/parallax/confidence"
	"github.com/dragoman-hub/dragoman/proto/parallax/registry"
)

// confidenceAgent is a Parallax agent that is a gRPC server.
type confidenceAgent struct {
	confidence.UnimplementedConfidenceAgentServer
	endpoint string
	waiting  chan struct{} // closed when it is asked to wait
	stopped  chan error    // the cause of each cancelled call
}

func (a *confidenceAgent) Analyze(ctx context.Context, r *confidence.AgentRequest) (*confidence.ConfidenceResult, error) {
	switch text := r.GetTaskDescription(); text {
	case "fail":
		return nil, status.Error(codes.Internal, "no idea")
	case "wait":
		close(a.waiting)
		<-ctx.Done()
		a.stopped <- ctx.Err()
		return nil, ctx.Err()
	default:
		return &confidence.ConfidenceResult{
			ValueJson: `"` + strings.ToUpper(text) + `"`, Confidence: 0.9, Reasoning: "asked nicely",
			Uncertainties: []string{"spelling"}, Metadata: map[string]string{"tokensUsed": "7"},
		}, nil
	}
}

func (*confidenceAgent) HealthCheck(context.Context, *emptypb.Empty) (*confidence.Health, error) {
	return &confidence.Health{Status: confidence.Health_HEALTHY}, nil
}

// startConfidenceAgent serves an agent until the test ends or stop is called.
func startConfidenceAgent(t *testing.T) (a *confidenceAgent, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a = &confidenceAgent{endpoint: l.Addr().String(), waiting: make(chan struct{}), stopped: make(chan error, 4)}
	g := grpc.NewServer()
	confidence.RegisterConfidenceAgentServer(g, a)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(l) // it ends with Stop
	}()
	stop = func() { g.Stop(); <-done }
	t.Cleanup(stop)
	return a, stop
}

func registryOf(t *testing.T, h *testHub) registry.RegistryClient {
	t.Helper()
	conn, err := grpc.NewClient(h.service.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return registry.NewRegistryClient(conn)
}

func registration(id, endpoint string) *registry.RegisterRequest {
	return &registry.RegisterRequest{AutoRenew: true, Agent: &registry.AgentRegistration{
		Id: id, Name: "Shouting Agent", Endpoint: endpoint, Capabilities: []string{"shouting"},
		Metadata: &registry.AgentRegistration_Metadata{Version: "1", Region: "eu", Labels: map[string]string{"floor": "7", "maxConcurrentTasks": "2"}},
	}}
}

func TestARegisteredConfidenceAgentIsCalled(t *testing.T) {
	h := newTestHub(t, nil)
	a, _ := startConfidenceAgent(t)
	r := registryOf(t, h)
	got, err := r.Register(t.Context(), registration("shout", a.endpoint))
	if err != nil || !got.GetSuccess() || got.GetLeaseId() != "lease-shout" {
		t.Fatalf("got %v and %v, want the lease lease-shout", got, err)
	}
	card, here := h.service.Hub().Agent(core.Principal{Operator: true}, "shout")
	if !here || card.Dialect != "parallax" || card.Name != "Shouting Agent" || card.Capabilities[0] != "shouting" || card.MaxConcurrent != 2 {
		t.Fatalf("got %+v, want the agent as it registered", card)
	}
	at := h.url()
	if code, out, _ := run(t, "ask", "capability:shouting", "hello", "--hub", at); code != command.ExitDone || !strings.Contains(out, "HELLO") {
		t.Errorf("got %q and %d, want HELLO", out, code)
	}
	if code, _, _ := run(t, "ask", "shout", "fail", "--hub", at); code != command.ExitFailed {
		t.Errorf("asked to fail: got %d, want %d", code, command.ExitFailed)
	}
	// Cancelling the task cancels the call.
	asker := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
	defer asker.Close(nil)
	task, err := asker.Open(core.Request{To: core.ToAgent("shout"), Content: "wait"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-a.waiting
	if err := asker.Cancel(task.ID(), "enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-a.stopped; !errors.Is(err, context.Canceled) {
		t.Errorf("the agent: got %v, want its call cancelled", err)
	}

	if got, err := r.Renew(t.Context(), &registry.RenewRequest{LeaseId: "lease-shout"}); err != nil || !got.GetSuccess() {
		t.Errorf("renewed: got %v and %v, want success", got, err)
	}
	if _, err := r.Renew(t.Context(), &registry.RenewRequest{LeaseId: "lease-nobody"}); status.Code(err) != codes.NotFound {
		t.Errorf("a lease that never was: got %v, want NOT_FOUND", err)
	}
	if _, err := r.Unregister(t.Context(), &registry.AgentRegistration{Id: "shout"}); err != nil {
		t.Errorf("unregistered: got %v, want no error", err)
	}
	h.await(t, "left shout")
	if _, err := r.Unregister(t.Context(), &registry.AgentRegistration{Id: "shout"}); status.Code(err) != codes.NotFound {
		t.Errorf("twice: got %v, want NOT_FOUND", err)
	}
}

func TestARefusedRegistrationSaysWhatToChange(t *testing.T) {
	h := newTestHub(t, nil)
	a, stop := startConfidenceAgent(t)
	other, _ := startConfidenceAgent(t)
	r := registryOf(t, h)
	for name, c := range map[string]struct {
		id, endpoint, about string
	}{
		"without an id":         {"", a.endpoint, "agent.id"},
		"under an id like that": {"capability:x", a.endpoint, "capability:x"},
		"without an endpoint":   {"a", "", "host:port"},
		"with one elsewhere":    {"a", "192.0.2.1:80", "PARALLAX_AGENT_HOST"},
		"with an unknown host":  {"a", "no.such.host.invalid:80", "no.such.host.invalid"},
	} {
		if _, err := r.Register(t.Context(), registration(c.id, c.endpoint)); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.about) {
			t.Errorf("%s: got %v, want INVALID_ARGUMENT about %s", name, err, c.about)
		}
	}
	for range 2 { // it may register again
		if _, err := r.Register(t.Context(), registration("shout", a.endpoint)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Register(t.Context(), registration("shout", other.endpoint)); status.Code(err) != codes.AlreadyExists {
		t.Errorf("the id of one that is well: got %v, want ALREADY_EXISTS", err)
	}
	stop()
	if _, err := r.Register(t.Context(), registration("shout", other.endpoint)); err != nil {
		t.Errorf("the id of one that is gone: got %v, want it taken over", err)
	}
	if code, out, _ := run(t, "ask", "shout", "hi", "--hub", h.url()); code != command.ExitDone || !strings.Contains(out, "HI") {
		t.Errorf("got %q and %d, want HI of the new one", out, code)
	}
}

func TestALeaseThatIsNotRenewedExpires(t *testing.T) {
	tier.Full(t, "it waits until a lease of three seconds ends")
	h := newTestHub(t, nil)
	a, _ := startConfidenceAgent(t)
	q := registration("shout", a.endpoint)
	q.Agent.Ttl = durationpb.New(3 * time.Second)
	if _, err := registryOf(t, h).Register(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	h.await(t, "left shout")
}

func TestALeaseBelongsToItsPrincipal(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "sample", "root") })
	a, _ := startConfidenceAgent(t)
	r := registryOf(t, h)
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "ApiKey "+token)
	}
	if _, err := r.Register(t.Context(), registration("shout", a.endpoint)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: got %v, want UNAUTHENTICATED", err)
	}
	if _, err := r.Register(as("sample"), registration("shout", a.endpoint)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Renew(as("root"), &registry.RenewRequest{LeaseId: "lease-shout"}); status.Code(err) != codes.NotFound {
		t.Errorf("renewed by another: got %v, want NOT_FOUND", err)
	}
	if _, err := r.Unregister(as("root"), &registry.AgentRegistration{Id: "shout"}); status.Code(err) != codes.NotFound {
		t.Errorf("unregistered by another: got %v, want NOT_FOUND", err)
	}
	if _, err := r.Unregister(as("sample"), &registry.AgentRegistration{Id: "shout"}); err != nil {
		t.Errorf("unregistered by its own: got %v, want no error", err)
	}
}

func TestTheRegistryListsAndWatchesAgents(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	a, _ := startConfidenceAgent(t)
	r := registryOf(t, h)
	watch, err := r.Watch(t.Context(), &registry.WatchRequest{Capabilities: []string{"shouting"}, IncludeInitial: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if _, err := r.Register(t.Context(), registration(id, a.endpoint)); err != nil {
			t.Fatal(err)
		}
	}
	first, err := r.ListAgents(t.Context(), &registry.ListAgentsRequest{Capabilities: []string{"shouting"}, Labels: map[string]string{"floor": "7"}, Limit: 2})
	if err != nil || len(first.GetAgents()) != 2 || first.GetTotalCount() != 3 || first.GetNextContinuationToken() != "b" {
		t.Errorf("got %v and %v, want two of three", first, err)
	}
	rest, err := r.ListAgents(t.Context(), &registry.ListAgentsRequest{Limit: 2, ContinuationToken: first.GetNextContinuationToken()})
	if err != nil || len(rest.GetAgents()) != 1 || rest.GetAgents()[0].GetId() != "c" || rest.GetNextContinuationToken() != "" {
		t.Errorf("got %v and %v, want the last", rest, err)
	}
	if none, err := r.ListAgents(t.Context(), &registry.ListAgentsRequest{Capabilities: []string{"singing"}}); err != nil || len(none.GetAgents()) != 0 {
		t.Errorf("got %v and %v, want none", none, err)
	}
	one, err := r.GetAgent(t.Context(), &registry.GetAgentRequest{AgentId: "a"})
	if err != nil || one.GetMetadata().GetRegion() != "eu" || one.GetMetadata().GetLabels()["floor"] != "7" || one.GetEndpoint() != "parallax://a" {
		t.Errorf("got %v and %v, want a", one, err)
	}
	if _, err := r.GetAgent(t.Context(), &registry.GetAgentRequest{AgentId: "z"}); status.Code(err) != codes.NotFound {
		t.Errorf("got %v, want NOT_FOUND", err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if e, err := watch.Recv(); err != nil || e.GetType() != registry.WatchEvent_ADDED || e.GetAgent().GetId() != id {
			t.Errorf("watched: got %v and %v, want that %s came", e, err, id)
		}
	}
	if _, err := r.Unregister(t.Context(), &registry.AgentRegistration{Id: "b"}); err != nil {
		t.Fatal(err)
	}
	if e, err := watch.Recv(); err != nil || e.GetType() != registry.WatchEvent_DELETED || e.GetAgent().GetId() != "b" {
		t.Errorf("watched: got %v and %v, want that b went", e, err)
	}
}

func TestARegistryWatchEndsWhenTheHubStops(t *testing.T) {
	h := newTestHub(t, nil)
	a, _ := startConfidenceAgent(t)
	r := registryOf(t, h)
	ctx, cancel := context.WithCancel(context.Background()) // the test's context ends before the hub is stopped
	defer cancel()
	watch, err := r.Watch(ctx, &registry.WatchRequest{IncludeInitial: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Register(ctx, registration("a", a.endpoint)); err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := h.service.Stop(ctx, "enough"); err != nil {
		t.Errorf("stopping: got %v, want no error", err)
	}
	for err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("watched: got %v, want UNAVAILABLE", err)
	}
}

func TestThePublishedSDKOfParallaxServesAsAnAgent(t *testing.T) {
	t.Parallel()
	dir := installSDK(t, "serve.cjs")
	h := newTestHub(t, nil)
	agent := runNode(t, dir, []string{"PARALLAX_REGISTRY=" + h.service.Addresses().GRPC}, "serve.cjs", "shout")
	agent.waitLine("Agent Shouting Agent registered with control plane")
	agent.waitLine("IN")
	h.await(t, "joined shout")
	c := connectPiClient(t, dialFrames(t, h.service.Addresses().Pi, "/", 64<<20))
	defer c.leave()
	x := c.begin(query{to: "capability:shouting", content: "hello"})
	if got := x.wait(t); got.End != "stop" || !strings.Contains(x.text.String(), "HELLO") {
		t.Errorf("got %+v and %q, want HELLO", got, x.text.String())
	}
	if code, _, _ := run(t, "ask", "shout", "fail", "--hub", h.url()); code != command.ExitFailed {
		t.Errorf("asked to fail: got %d, want %d", code, command.ExitFailed)
	}
	if err := agent.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.await(t, "left shout")
}
