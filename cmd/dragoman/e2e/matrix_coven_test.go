package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// covenByTools is a Coven agent that asks with the hub's tools: agent_ask, whose only result is the
// whole answer or "<code>: <message>". Leaving is the only way to cancel that; what is to be
// cancelled is delegated, and agent_result fetches its result.
func covenByTools() *clientDialect {
	failed := func(f *core.Fault) outcome { return outcome{End: "error", Code: string(f.Code), Message: f.Message} }
	return &clientDialect{
		name:    "Coven tools",
		connect: func(t *testing.T, h *testHub, id string) requester { return connectCovenAgent(t, h, id) },
		data:    true, deadlines: true, delegates: true, reports: map[string]func([]string) []string{"file": keepAll},
		done: outcome{End: "output"}, reported: outcome{End: "done"},
		failed: failed, refused: failed,
		cancelled: func(reason string) outcome {
			return outcome{End: "cancelled", Code: "cancelled", Message: reason, Retry: "false"}
		},
		reconnects: covenReconnects,
	}
}

// covenAgent is an agent that only asks.
type covenAgent struct {
	proxy *proxy
	cc    *grpc.ClientConn
	link  *link.Link[*wire.ServerMessage, *wire.AgentMessage]
	done  chan struct{}
	calls exchanges
	ids   atomic.Int64
}

func connectCovenAgent(t *testing.T, h *testHub, id string) *covenAgent {
	t.Helper()
	return connectCovenAgentWith(t, h, id, "asking")
}

func connectCovenAgentWith(t *testing.T, h *testHub, id string, capabilities ...string) *covenAgent {
	t.Helper()
	return connectCovenAgentAt(t, h.service.Addresses().GRPC, id, capabilities...)
}

// connectCovenAgentAt is connectCovenAgentWith for the gRPC address of a hub.
func connectCovenAgentAt(t *testing.T, addr, id string, capabilities ...string) *covenAgent {
	t.Helper()
	c := newProxy(t, addr)
	cc, err := grpcserver.Dial(t.Context(), c.addr(), grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if token := tokenFor(addr); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	conn, err := grpcserver.Open(ctx, wire.NewCovenControlClient(cc).AgentStream)
	if err != nil {
		cc.Close()
		t.Fatal(err)
	}
	a := &covenAgent{proxy: c, cc: cc, link: link.New(conn, link.Options{}), done: make(chan struct{})}
	welcome := a.calls.add("welcome", newExchange())
	go func() {
		defer close(a.done)
		reason := a.link.Run(context.Background(), a.receive, nil)
		a.calls.lost(&reason)
	}()
	register := &wire.RegisterAgent{AgentId: id, Name: id, Capabilities: capabilities}
	if err := a.send(t.Context(), &wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: register}}); err != nil {
		t.Fatal(err)
	}
	if got := welcome.wait(t); got.End != "welcome" {
		a.leave()
		t.Fatalf("got %+v in answer to the registration, want a Welcome", got)
	}
	return a
}

func (a *covenAgent) send(ctx context.Context, m *wire.AgentMessage) error {
	return a.link.Send(ctx, m, proto.Size(m))
}

func (a *covenAgent) receive(_ context.Context, m *wire.ServerMessage) error {
	switch p := m.GetPayload().(type) {
	case *wire.ServerMessage_Welcome:
		a.calls.get("welcome").end(outcome{End: "welcome"})
	case *wire.ServerMessage_PackToolResult:
		x := a.calls.get(p.PackToolResult.GetRequestId())
		if x == nil {
			return fmt.Errorf("got a result for the unknown call %q", p.PackToolResult.GetRequestId())
		}
		switch r := p.PackToolResult.GetResult().(type) {
		case *wire.PackToolResult_OutputJson:
			x.end(outcome{End: "output", Data: json.RawMessage(r.OutputJson)})
		case *wire.PackToolResult_Error:
			code, answer, _ := strings.Cut(r.Error, ": ")
			x.end(outcome{End: "error", Code: code, Message: answer})
		}
	}
	return nil
}

// call calls a tool of the hub.
func (a *covenAgent) call(tool string, input any) *exchange {
	id := fmt.Sprintf("call-%d", a.ids.Add(1))
	x := a.calls.add(id, newExchange())
	m := &wire.ExecutePackTool{RequestId: id, ToolName: tool, InputJson: string(plainJSON(input))}
	if err := a.send(context.Background(), &wire.AgentMessage{Payload: &wire.AgentMessage_ExecutePackTool{ExecutePackTool: m}}); err != nil {
		x.lost(err)
	}
	return x
}

// covenOutput is the output of the tools, as far as tests read it.
type covenOutput struct {
	TaskID  string          `json:"task_id"`
	AgentID string          `json:"agent_id"`
	State   string          `json:"state"`
	Text    string          `json:"text"`
	Data    json.RawMessage `json:"data"`
	Files   []core.File     `json:"files"`
	Error   *core.Fault     `json:"error"`
}

func (a *covenAgent) begin(q query) *exchange {
	if q.delegate {
		return a.delegate(q)
	}
	input := map[string]any{"to": q.to, "content": q.content}
	if q.data != nil {
		input["data"] = q.data
	}
	if q.deadline > 0 {
		input["timeout_seconds"] = q.deadline.Seconds()
	}
	x, call := newExchange(), a.call("agent_ask", input)
	go func() {
		<-call.ended
		var o covenOutput
		result := call.result
		if result.End == "output" {
			if err := json.Unmarshal(result.Data, &o); err != nil || o.AgentID != q.to || o.TaskID == "" {
				x.violates("agent_ask returned %.200s", result.Data)
			}
			result.Text, result.Data = o.Text, o.Data
			for _, f := range o.Files {
				x.reportBody(f)
			}
		}
		x.end(result)
	}()
	return x
}

// delegate delegates with agent_delegate, which returns at once, and waits for the result with
// agent_result.
func (a *covenAgent) delegate(q query) *exchange {
	x, call := newExchange(), a.call("agent_delegate", map[string]any{"to": q.to, "content": q.content})
	<-call.ended // every call ends, at the latest with the connection
	var o covenOutput
	switch result := call.result; {
	case result.End != "output":
		x.end(result)
		return x
	case json.Unmarshal(result.Data, &o) != nil || o.AgentID != q.to:
		x.lost(fmt.Errorf("agent_delegate returned %s", result.Data))
		return x
	}
	x.id = o.TaskID
	x.cancel = func(ctx context.Context, reason string) error {
		call := a.call("agent_cancel", map[string]string{"task_id": x.id, "reason": reason})
		select {
		case <-call.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
		if got := string(call.result.Data); got != `{"cancelled":true}` {
			return fmt.Errorf("agent_cancel returned %q and %+v", got, call.result)
		}
		return nil
	}
	a.result(x.id, x)
	return x
}

// result waits for the result of a delegated task and ends the exchange with it.
func (a *covenAgent) result(task string, x *exchange) {
	call := a.call("agent_result", map[string]any{"task_id": task, "wait_seconds": watchdog / time.Second})
	go func() {
		<-call.ended
		var o covenOutput
		switch result := call.result; {
		case result.End != "output":
			x.end(result)
		case json.Unmarshal(result.Data, &o) != nil:
			x.lost(fmt.Errorf("agent_result returned %s", result.Data))
		case o.Error != nil:
			x.end(outcome{End: o.State, Text: o.Text, Code: string(o.Error.Code), Message: o.Error.Message, Retry: fmt.Sprint(o.Error.Retryable)})
		default:
			x.end(outcome{End: o.State, Text: o.Text, Data: o.Data})
		}
	}()
}

func (a *covenAgent) cut() {
	a.proxy.cut()
	<-a.done
}

func (a *covenAgent) leave() {
	a.link.Close(link.Reason{Cause: link.Normal})
	<-a.done
	a.cc.Close()
}

// covenReconnects cuts off agent_ask, which is cancelled, and a delegated task, whose result the
// agent fetches after it has reconnected.
func covenReconnects(t *testing.T, d *pair) string {
	const id = "phoenix"
	first := connectCovenAgent(t, d.testHub, id)
	defer first.leave()
	asked, x := d.startHalf(t, first, query{})
	task, y := d.startHalf(t, first, query{delegate: true})
	first.cut()
	for _, x := range []*exchange{x, y} {
		if got := x.wait(t); got.End != "lost" {
			t.Errorf("got %+v, want the connection lost", got)
		}
	}
	d.await(t, "left "+id)
	d.wantCancelled(t, asked)
	second := connectCovenAgent(t, d.testHub, id)
	defer second.leave()
	z := newExchange()
	second.result(y.id, z)
	d.finish(t, task)
	want := d.asks.reported
	want.Text = firstHalf + secondHalf
	wantResult(t, z.wait(t), want)
	return "ask cancelled, result kept"
}
