package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// testPack is a pack over gRPC that uses only generated code.
type testPack struct {
	t          *testing.T
	client     wire.PackServiceClient
	stream     grpc.ServerStreamingClient[wire.ExecuteToolRequest]
	disconnect func() // takes the connection down
}

// registerPack registers a pack and waits for the headers, as tonic's clients do. It returns the
// error if the pack was refused.
func registerPack(t *testing.T, h *testHub, m *wire.PackManifest) (*testPack, error) {
	t.Helper()
	return registerPackAt(t, h.service.Addresses().GRPC, m)
}

// registerPackAt is registerPack for the gRPC address of a hub.
func registerPackAt(t *testing.T, addr string, m *wire.PackManifest) (*testPack, error) {
	t.Helper()
	p := packAt(t, addr)
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	hangUp := p.disconnect
	p.disconnect = func() { cancel(); hangUp() }
	t.Cleanup(p.disconnect)
	var err error
	if p.stream, err = p.client.Register(ctx, m); err != nil {
		t.Fatal(err)
	}
	header, err := p.stream.Header()
	if err == nil && header == nil {
		_, err = p.stream.Recv()
	}
	return p, err
}

// packAt is a pack that is connected to a hub, and not registered.
func packAt(t *testing.T, addr string) *testPack {
	t.Helper()
	cc, err := grpcserver.Dial(t.Context(), addr, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return &testPack{t: t, client: wire.NewPackServiceClient(cc), disconnect: func() { cc.Close() }}
}

func mustRegisterPack(t *testing.T, h *testHub, id string, tools ...*wire.ToolDefinition) *testPack {
	t.Helper()
	p, err := registerPack(t, h, &wire.PackManifest{PackId: id, Version: "1", Tools: tools})
	if err != nil {
		t.Fatalf("registering %s: got %v, want no error", id, err)
	}
	return p
}

// nextCall waits for the next call.
func (p *testPack) nextCall() *wire.ExecuteToolRequest {
	p.t.Helper()
	r, err := p.stream.Recv()
	if err != nil {
		p.t.Fatalf("waiting for a call: got %v, want one", err)
	}
	return r
}

func (p *testPack) result(r *wire.ExecuteToolResponse) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	_, err := p.client.ToolResult(ctx, r)
	return err
}

// answer answers a call.
func (p *testPack) answer(id, output string) {
	p.t.Helper()
	if err := p.result(&wire.ExecuteToolResponse{RequestId: id, Result: &wire.ExecuteToolResponse_OutputJson{OutputJson: output}}); err != nil {
		p.t.Errorf("ToolResult: got %v, want OK", err)
	}
}

// echo answers every call with its input until the pack disconnects.
func (p *testPack) echo() {
	for {
		r, err := p.stream.Recv()
		if err != nil {
			return
		}
		err = p.result(&wire.ExecuteToolResponse{RequestId: r.GetRequestId(), Result: &wire.ExecuteToolResponse_OutputJson{OutputJson: r.GetInputJson()}})
		if status.Code(err) == codes.Canceled {
			return // the caller may learn of the disconnect before the pack does
		}
		if err != nil {
			p.t.Errorf("ToolResult: got %v, want OK", err)
		}
	}
}

func definition(name string, capabilities ...string) *wire.ToolDefinition {
	return &wire.ToolDefinition{Name: name, Description: "the tool " + name, RequiredCapabilities: capabilities}
}

// toolsFor registers an agent with the capabilities and returns the tools in its Welcome, without
// the hub's own.
func toolsFor(t *testing.T, h *testHub, capabilities ...string) []*wire.ToolDefinition {
	t.Helper()
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	stream, err := wire.NewCovenControlClient(cc).AgentStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := h.key()
	register := &wire.RegisterAgent{AgentId: id, Capabilities: capabilities}
	if err := stream.Send(&wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: register}}); err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv()
	if err != nil || m.GetWelcome() == nil {
		t.Fatalf("got %v and %v, want a Welcome", m, err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	h.await(t, "left "+id)
	return m.GetWelcome().GetAvailableTools()[len(h.service.Hub().Tools()):]
}

func TestAPackServesAgentsOverGRPC(t *testing.T) {
	h := newTestHub(t, nil)
	weather := definition("weather", "sky")
	weather.InputSchemaJson = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
	weather.TimeoutSeconds = 7
	p := mustRegisterPack(t, h, "sky", weather, definition("moon"), definition("sun", "asking"))
	received := toolsFor(t, h, "sky")
	if len(received) != 2 || received[0].GetName() != "moon" || received[0].GetTimeoutSeconds() != 30 || !proto.Equal(received[1], weather) {
		t.Errorf("got %v, want moon with the usual timeout, and weather as the pack defined it", received)
	}
	a := connectCovenAgent(t, h, "a")
	defer a.leave()
	x := a.call("sun", map[string]int{"n": 1})
	r := p.nextCall()
	if r.GetToolName() != "sun" || r.GetInputJson() != `{"n":1}` {
		t.Errorf("got %v, want sun with its input", r)
	}
	p.answer(r.GetRequestId(), `{"up":true}`)
	if got := x.wait(t); got.End != "output" || string(got.Data) != `{"up":true}` {
		t.Errorf("got %+v, want what the pack answered", got)
	}
	if got := a.call("weather", map[string]string{"city": "Bonn"}).wait(t); got.Code != "not_authorized" || !strings.Contains(got.Message, "sky") {
		t.Errorf("got %+v, want it refused: the agent lacks the capability sky", got)
	}
}

func TestARefusedPackGetsTheStatusAtOnce(t *testing.T) {
	h := newTestHub(t, nil)
	mustRegisterPack(t, h, "there", definition("taken"))
	for name, c := range map[string]struct {
		m    *wire.PackManifest
		code codes.Code
		text string
	}{
		"no id":      {&wire.PackManifest{}, codes.InvalidArgument, "pack_id is required"},
		"the id":     {&wire.PackManifest{PackId: "there"}, codes.AlreadyExists, "pack there already registered"},
		"a name":     {&wire.PackManifest{PackId: "p", Tools: []*wire.ToolDefinition{definition("x"), definition("taken")}}, codes.AlreadyExists, "tool collision: tool name collision: tool 'taken' already registered by pack 'there'"},
		"our name":   {&wire.PackManifest{PackId: "p", Tools: []*wire.ToolDefinition{definition("agent_ask")}}, codes.AlreadyExists, "tool collision: tool name collision: tool 'agent_ask' already registered as builtin"},
		"bad schema": {&wire.PackManifest{PackId: "p", Tools: []*wire.ToolDefinition{{Name: "x", InputSchemaJson: "{"}}}, codes.InvalidArgument, "the input schema of tool x cannot be used"},
	} {
		_, err := registerPack(t, h, c.m)
		if got := status.Convert(err); got.Code() != c.code || !strings.HasPrefix(got.Message(), c.text) {
			t.Errorf("%s: got %v, want %v %q", name, err, c.code, c.text)
		}
	}
	if received := toolsFor(t, h); len(received) != 1 || received[0].GetName() != "taken" {
		t.Errorf("got %v, want nothing of what was refused", received)
	}
}

func TestAFloodOfCallsIsAnsweredCallByCall(t *testing.T) {
	h := newTestHub(t, nil)
	p := mustRegisterPack(t, h, "p", definition("echo"))
	a, b := connectCovenAgent(t, h, "a"), connectCovenAgent(t, h, "b")
	defer a.leave()
	defer b.leave()
	var calls []*exchange
	for i := range 1000 { // nothing is answered yet: calls beyond the limits are refused at once
		for _, agent := range []*covenAgent{a, b} {
			calls = append(calls, agent.call("echo", map[string]int{"n": i}))
		}
	}
	echoing := make(chan struct{})
	go func() {
		defer close(echoing)
		p.echo()
	}()
	outputs := 0
	for i, x := range calls {
		switch got := x.wait(t); {
		case got.End == "output" && string(got.Data) == fmt.Sprintf(`{"n":%d}`, i/2):
			outputs++
		case got.Code != "overloaded":
			t.Errorf("call %d: got %+v, want its own output or overloaded", i, got)
		}
	}
	if outputs < 64 {
		t.Errorf("got %d outputs, want at least as many as one agent may wait for", outputs)
	}
	if got := b.call("echo", struct{}{}).wait(t); got.End != "output" {
		t.Errorf("after the flood: got %+v, want an output", got)
	}
	p.disconnect()
	<-echoing
}

func TestASilentPackBlocksNoOtherCall(t *testing.T) {
	h := newTestHub(t, nil)
	slow := definition("slow")
	slow.TimeoutSeconds = 1
	p := mustRegisterPack(t, h, "p", slow)
	a := connectCovenAgent(t, h, "a")
	defer a.leave()
	x := a.call("slow", struct{}{})
	id := p.nextCall().GetRequestId()
	if got := a.call("agents_list", struct{}{}).wait(t); got.End != "output" {
		t.Errorf("another tool meanwhile: got %+v, want its output", got)
	}
	if got := x.wait(t); got.Code != "context deadline exceeded" {
		t.Errorf("got %+v, want it timed out", got)
	}
	p.answer(id, "1")
	p.answer("no-such-call", "1")
	if got := h.service.Hub().Counters()["coven.ignored.tool_result"]; got != 2 {
		t.Errorf("answers to unknown calls: got %d counted, want 2", got)
	}
}

func TestCallsFailWhenTheirPackDisconnects(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Limits.ToolTimeout = ample })
	p := mustRegisterPack(t, h, "p", definition("x"))
	a := connectCovenAgent(t, h, "a")
	defer a.leave()
	calls := []*exchange{a.call("x", struct{}{}), a.call("x", struct{}{})}
	p.nextCall()
	p.nextCall()
	p.disconnect()
	for _, x := range calls {
		if got := x.wait(t); got.Code != "pack disconnected" {
			t.Errorf("got %+v, want the pack to be gone", got)
		}
	}
	if got := a.call("x", struct{}{}).wait(t); got.Code != "tool not found" {
		t.Errorf("got %+v, want the tool to be gone", got)
	}
}

func TestATooLargePackResultIsRefused(t *testing.T) {
	h := newTestHub(t, nil)
	p := mustRegisterPack(t, h, "p", definition("x"))
	a := connectCovenAgent(t, h, "a")
	defer a.leave()
	const most = grpcserver.DefaultMaxMessageBytes

	// The result fits into the pack's message, but not into that of an agent whose call has
	// a longer id.
	long := strings.Repeat("call", 50)
	x := a.calls.add(long, newExchange())
	call := &wire.ExecutePackTool{RequestId: long, ToolName: "x"}
	if err := a.send(t.Context(), &wire.AgentMessage{Payload: &wire.AgentMessage_ExecutePackTool{ExecutePackTool: call}}); err != nil {
		t.Fatal(err)
	}
	id := p.nextCall().GetRequestId()
	p.answer(id, `"`+strings.Repeat("x", most-100)+`"`)
	if got := x.wait(t); got.Code != "too_large" || !strings.Contains(got.Message, fmt.Sprint(most)) {
		t.Errorf("got %.200v, want too_large with the limit", got)
	}

	// A result above the message limit fails the call at once, and the pack learns why.
	result := func(id string, size int) error {
		return p.result(&wire.ExecuteToolResponse{RequestId: id, Result: &wire.ExecuteToolResponse_OutputJson{OutputJson: `"` + strings.Repeat("x", size) + `"`}})
	}
	x = a.call("x", struct{}{})
	err := result(p.nextCall().GetRequestId(), most)
	if got := status.Convert(err); got.Code() != codes.ResourceExhausted || !strings.Contains(got.Message(), fmt.Sprint(most)) {
		t.Errorf("a result above the limit: got %v, want %v with the limit", err, codes.ResourceExhausted)
	}
	if got := x.wait(t); got.Code != "too_large" || !strings.Contains(got.Message, fmt.Sprint(most)) {
		t.Errorf("got %.200v, want too_large with the limit", got)
	}

	// The hub does not know which call a result belongs to that gRPC refuses: the pack may send an error.
	x = a.call("x", struct{}{})
	id = p.nextCall().GetRequestId()
	if err := result(id, 4*most); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a result that gRPC refuses: got %v, want %v", err, codes.ResourceExhausted)
	}
	if err := p.result(&wire.ExecuteToolResponse{RequestId: id, Result: &wire.ExecuteToolResponse_Error{Error: strings.Repeat("too much ", most/10)}}); err != nil {
		t.Errorf("an error instead: got %v, want OK", err)
	}
	if got := x.wait(t); got.End != "error" || !strings.HasPrefix(got.Code, "too much too much") {
		t.Errorf("got %.200v, want the beginning of the error", got)
	}
}

func TestAPackThatReconnectsReplacesItsTools(t *testing.T) {
	h := newTestHub(t, nil)
	watcher := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "watcher"}})
	defer watcher.Close(nil)
	watcher.WatchTools()
	changed := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		if b, err := watcher.Next(ctx); err != nil || !b.ToolsChanged {
			t.Fatalf("got %+v and %v, want the notice that the tools changed", b, err)
		}
	}
	p := mustRegisterPack(t, h, "p", definition("old"))
	changed()
	p.disconnect()
	changed()
	p = mustRegisterPack(t, h, "p", definition("new"))
	changed()
	if received := toolsFor(t, h); len(received) != 1 || received[0].GetName() != "new" {
		t.Errorf("got %v, want the new tool alone", received)
	}
	p.disconnect()
	changed()
}

func TestStoppingTheHubDisconnectsItsPacks(t *testing.T) {
	h := newTestHub(t, nil)
	p := mustRegisterPack(t, h, "p", definition("x"))
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if err := h.service.Stop(ctx, "maintenance"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.stream.Recv(); status.Code(err) != codes.Unavailable || errors.Is(err, io.EOF) {
		t.Errorf("got %v, want %v", err, codes.Unavailable)
	}
}
