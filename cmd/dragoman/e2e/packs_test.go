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

// realPack is a pack over gRPC, played by hand with nothing but generated code.
type realPack struct {
	t      *testing.T
	client wire.PackServiceClient
	stream grpc.ServerStreamingClient[wire.ExecuteToolRequest]
	vanish func() // takes the connection down
}

// registerPack registers a pack and waits for the headers, as tonic's clients do; or
// returns why it was refused.
func registerPack(t *testing.T, s *stage, m *wire.PackManifest) (*realPack, error) {
	t.Helper()
	cc, err := grpcserver.Dial(t.Context(), s.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	p := &realPack{t: t, client: wire.NewPackServiceClient(cc), vanish: func() { cancel(); cc.Close() }}
	t.Cleanup(p.vanish)
	if p.stream, err = p.client.Register(ctx, m); err != nil {
		t.Fatal(err)
	}
	header, err := p.stream.Header()
	if err == nil && header == nil {
		_, err = p.stream.Recv()
	}
	return p, err
}

func mustRegister(t *testing.T, s *stage, id string, tools ...*wire.ToolDefinition) *realPack {
	t.Helper()
	p, err := registerPack(t, s, &wire.PackManifest{PackId: id, Version: "1", Tools: tools})
	if err != nil {
		t.Fatalf("registering %s: got %v, want no error", id, err)
	}
	return p
}

// next waits for what the pack is to do.
func (p *realPack) next() *wire.ExecuteToolRequest {
	p.t.Helper()
	r, err := p.stream.Recv()
	if err != nil {
		p.t.Fatalf("waiting for a call: got %v, want one", err)
	}
	return r
}

func (p *realPack) result(r *wire.ExecuteToolResponse) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	_, err := p.client.ToolResult(ctx, r)
	return err
}

// answer answers a call, which is taken whatever becomes of it.
func (p *realPack) answer(id, output string) {
	p.t.Helper()
	if err := p.result(&wire.ExecuteToolResponse{RequestId: id, Result: &wire.ExecuteToolResponse_OutputJson{OutputJson: output}}); err != nil {
		p.t.Errorf("ToolResult: got %v, want OK", err)
	}
}

// echo answers every call with its input, until the pack vanishes.
func (p *realPack) echo() {
	for {
		r, err := p.stream.Recv()
		if err != nil {
			return
		}
		err = p.result(&wire.ExecuteToolResponse{RequestId: r.GetRequestId(), Result: &wire.ExecuteToolResponse_OutputJson{OutputJson: r.GetInputJson()}})
		if status.Code(err) == codes.Canceled {
			return // it vanished: who called may be told before the pack is
		}
		if err != nil {
			p.t.Errorf("ToolResult: got %v, want OK", err)
		}
	}
}

func definition(name string, capabilities ...string) *wire.ToolDefinition {
	return &wire.ToolDefinition{Name: name, Description: "the tool " + name, RequiredCapabilities: capabilities}
}

// toolsToldTo registers an agent with the capabilities and returns the tools that
// Welcome tells of beside the hub's own.
func toolsToldTo(t *testing.T, s *stage, capabilities ...string) []*wire.ToolDefinition {
	t.Helper()
	cc, err := grpcserver.Dial(t.Context(), s.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	stream, err := wire.NewCovenControlClient(cc).AgentStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := s.key()
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
	s.await(t, "left "+id)
	return m.GetWelcome().GetAvailableTools()[len(s.service.Hub().Tools()):]
}

func TestAPackServesAgentsOverGRPC(t *testing.T) {
	s := newStage(t, nil)
	weather := definition("weather", "sky")
	weather.InputSchemaJson = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
	weather.TimeoutSeconds = 7
	p := mustRegister(t, s, "sky", weather, definition("moon"), definition("sun", "asking"))
	told := toolsToldTo(t, s, "sky")
	if len(told) != 2 || told[0].GetName() != "moon" || told[0].GetTimeoutSeconds() != 30 || !proto.Equal(told[1], weather) {
		t.Errorf("got %v, want moon with the usual timeout, and weather as the pack defined it", told)
	}
	a := connectCovenAgent(t, s, "a")
	defer a.leave()
	x := a.call("sun", map[string]int{"n": 1})
	r := p.next()
	if r.GetToolName() != "sun" || r.GetInputJson() != `{"n":1}` {
		t.Errorf("got %v, want sun with its input", r)
	}
	p.answer(r.GetRequestId(), `{"up":true}`)
	if got := x.outcome(t); got.End != "output" || string(got.Data) != `{"up":true}` {
		t.Errorf("got %+v, want what the pack answered", got)
	}
	if got := a.call("weather", map[string]string{"city": "Bonn"}).outcome(t); got.Code != "not_authorized" || !strings.Contains(got.Words, "sky") {
		t.Errorf("got %+v, want it refused: the agent lacks the capability sky", got)
	}
}

func TestAPackThatMayNotRegisterHearsTheStatusAtOnce(t *testing.T) {
	s := newStage(t, nil)
	mustRegister(t, s, "there", definition("taken"))
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
		_, err := registerPack(t, s, c.m)
		if got := status.Convert(err); got.Code() != c.code || !strings.HasPrefix(got.Message(), c.text) {
			t.Errorf("%s: got %v, want %v %q", name, err, c.code, c.text)
		}
	}
	if told := toolsToldTo(t, s); len(told) != 1 || told[0].GetName() != "taken" {
		t.Errorf("got %v, want nothing of what was refused", told)
	}
}

func TestAFloodOfCallsIsAnsweredCallByCall(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.Limits.PackCalls = 100 })
	p := mustRegister(t, s, "p", definition("echo"))
	a, b := connectCovenAgent(t, s, "a"), connectCovenAgent(t, s, "b")
	defer a.leave()
	defer b.leave()
	var calls []*exchange
	for i := range 1000 { // nobody answers yet: what is beyond the limits is refused at once
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
		switch got := x.outcome(t); {
		case got.End == "output" && string(got.Data) == fmt.Sprintf(`{"n":%d}`, i/2):
			outputs++
		case got.Code != "overloaded":
			t.Errorf("call %d: got %+v, want its own output or overloaded", i, got)
		}
	}
	if outputs < 64 {
		t.Errorf("got %d outputs, want at least as many as one agent may wait for", outputs)
	}
	if got := b.call("echo", struct{}{}).outcome(t); got.End != "output" {
		t.Errorf("after the flood: got %+v, want an output", got)
	}
	p.vanish()
	<-echoing
}

func TestAPackThatNeverAnswersHoldsNobodyUp(t *testing.T) {
	s := newStage(t, nil)
	slow := definition("slow")
	slow.TimeoutSeconds = 1
	p := mustRegister(t, s, "p", slow)
	a := connectCovenAgent(t, s, "a")
	defer a.leave()
	x := a.call("slow", struct{}{})
	id := p.next().GetRequestId()
	if got := a.call("agents_list", struct{}{}).outcome(t); got.End != "output" {
		t.Errorf("another tool meanwhile: got %+v, want its output", got)
	}
	if got := x.outcome(t); got.Code != "context deadline exceeded" {
		t.Errorf("got %+v, want it timed out", got)
	}
	p.answer(id, "1")
	p.answer("no-such-call", "1")
	if got := s.service.Hub().Counters()["coven.ignored.tool_result"]; got != 2 {
		t.Errorf("answers that nobody waits for: got %d counted, want 2", got)
	}
}

func TestAPackThatVanishesInTheMiddleOfACallIsMissedAtOnce(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.Limits.ToolTimeout = ample })
	p := mustRegister(t, s, "p", definition("x"))
	a := connectCovenAgent(t, s, "a")
	defer a.leave()
	calls := []*exchange{a.call("x", struct{}{}), a.call("x", struct{}{})}
	p.next()
	p.next()
	p.vanish()
	for _, x := range calls {
		if got := x.outcome(t); got.Code != "pack disconnected" {
			t.Errorf("got %+v, want the pack to be gone", got)
		}
	}
	if got := a.call("x", struct{}{}).outcome(t); got.Code != "tool not found" {
		t.Errorf("got %+v, want the tool to be gone", got)
	}
}

func TestAResultThatFitsIntoNoMessageIsRefusedWithTheReason(t *testing.T) {
	s := newStage(t, nil)
	p := mustRegister(t, s, "p", definition("x"))
	a := connectCovenAgent(t, s, "a")
	defer a.leave()
	const most = grpcserver.DefaultMaxMessageBytes

	// The result fits into the message of the pack, and not into that of an agent that
	// gave the call a longer id.
	long := strings.Repeat("call", 50)
	x := a.calls.add(long, newExchange())
	call := &wire.ExecutePackTool{RequestId: long, ToolName: "x"}
	if err := a.send(t.Context(), &wire.AgentMessage{Payload: &wire.AgentMessage_ExecutePackTool{ExecutePackTool: call}}); err != nil {
		t.Fatal(err)
	}
	id := p.next().GetRequestId()
	p.answer(id, `"`+strings.Repeat("x", most-100)+`"`)
	if got := x.outcome(t); got.Code != "too_large" || !strings.Contains(got.Words, fmt.Sprint(most)) {
		t.Errorf("got %.200v, want too_large with the limit", got)
	}

	// A result above the limit of a message tells who called at once, and the pack why.
	result := func(id string, size int) error {
		return p.result(&wire.ExecuteToolResponse{RequestId: id, Result: &wire.ExecuteToolResponse_OutputJson{OutputJson: `"` + strings.Repeat("x", size) + `"`}})
	}
	x = a.call("x", struct{}{})
	err := result(p.next().GetRequestId(), most)
	if got := status.Convert(err); got.Code() != codes.ResourceExhausted || !strings.Contains(got.Message(), fmt.Sprint(most)) {
		t.Errorf("a result above the limit: got %v, want %v with the limit", err, codes.ResourceExhausted)
	}
	if got := x.outcome(t); got.Code != "too_large" || !strings.Contains(got.Words, fmt.Sprint(most)) {
		t.Errorf("got %.200v, want too_large with the limit", got)
	}

	// Of one that gRPC refuses the hub does not know whose it is: the pack may say it.
	x = a.call("x", struct{}{})
	id = p.next().GetRequestId()
	if err := result(id, 4*most); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a result that gRPC refuses: got %v, want %v", err, codes.ResourceExhausted)
	}
	if err := p.result(&wire.ExecuteToolResponse{RequestId: id, Result: &wire.ExecuteToolResponse_Error{Error: strings.Repeat("too much ", most/10)}}); err != nil {
		t.Errorf("an error instead: got %v, want OK", err)
	}
	if got := x.outcome(t); got.End != "error" || !strings.HasPrefix(got.Code, "too much too much") {
		t.Errorf("got %.200v, want the beginning of the error", got)
	}
}

func TestAPackThatComesBackWithAnotherManifestChangesTheTools(t *testing.T) {
	s := newStage(t, nil)
	watcher := s.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "watcher"}})
	defer watcher.Close(nil)
	watcher.WatchTools()
	changed := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		if b, err := watcher.Next(ctx); err != nil || !b.ToolsChanged {
			t.Fatalf("got %+v and %v, want it told that the tools changed", b, err)
		}
	}
	p := mustRegister(t, s, "p", definition("old"))
	changed()
	p.vanish()
	changed()
	p = mustRegister(t, s, "p", definition("new"))
	changed()
	if told := toolsToldTo(t, s); len(told) != 1 || told[0].GetName() != "new" {
		t.Errorf("got %v, want the new tool alone", told)
	}
	p.vanish()
	changed()
}

func TestAHubThatStopsSendsItsPacksAway(t *testing.T) {
	s := newStage(t, nil)
	p := mustRegister(t, s, "p", definition("x"))
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if err := s.service.Stop(ctx, "maintenance"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.stream.Recv(); status.Code(err) != codes.Unavailable || errors.Is(err, io.EOF) {
		t.Errorf("got %v, want %v", err, codes.Unavailable)
	}
}
