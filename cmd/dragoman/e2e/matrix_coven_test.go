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
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// covenByTools is a Coven agent that asks by the tools of the hub: agent_ask, whose
// one result is the whole answer or "<code>: <message>". It can be taken back only
// by leaving; what is to be cancelled is delegated, and asked after by agent_result.
func covenByTools() *tongue {
	failed := func(f *core.Fault) telling { return telling{End: "error", Code: string(f.Code), Words: f.Message} }
	return &tongue{
		name:    "Coven tools",
		connect: func(t *testing.T, s *stage, id string) requester { return connectCovenAgent(t, s, id) },
		data:    true, deadlines: true, delegates: true, tells: map[string]func([]string) []string{"file": all},
		done: telling{End: "output"}, reported: telling{End: "done"},
		failed: failed, refused: failed,
		cancelled: func(reason string) telling {
			return telling{End: "cancelled", Code: "cancelled", Words: reason, Retry: "false"}
		},
		afterCut: covenAfterCut,
	}
}

// covenAgent is an agent that asks and is never asked.
type covenAgent struct {
	cable *cable
	cc    *grpc.ClientConn
	link  *link.Link[*wire.ServerMessage, *wire.AgentMessage]
	done  chan struct{}
	calls exchanges
	ids   atomic.Int64
}

func connectCovenAgent(t *testing.T, s *stage, id string) *covenAgent {
	t.Helper()
	return connectCovenAgentWith(t, s, id, "asking")
}

func connectCovenAgentWith(t *testing.T, s *stage, id string, capabilities ...string) *covenAgent {
	t.Helper()
	c := lay(t, s.service.Addresses().GRPC)
	cc, err := grpcserver.Dial(t.Context(), c.addr(), grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpcserver.Open(t.Context(), wire.NewCovenControlClient(cc).AgentStream, grpcserver.OpenOptions{})
	if err != nil {
		cc.Close()
		t.Fatal(err)
	}
	a := &covenAgent{cable: c, cc: cc, link: link.New(conn, link.Options{}), done: make(chan struct{})}
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
	if got := welcome.outcome(t); got.End != "welcome" {
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
		a.calls.get("welcome").end(telling{End: "welcome"})
	case *wire.ServerMessage_PackToolResult:
		x := a.calls.get(p.PackToolResult.GetRequestId())
		if x == nil {
			return fmt.Errorf("a result came for the call %q, which nobody made", p.PackToolResult.GetRequestId())
		}
		switch r := p.PackToolResult.GetResult().(type) {
		case *wire.PackToolResult_OutputJson:
			x.end(telling{End: "output", Data: json.RawMessage(r.OutputJson)})
		case *wire.PackToolResult_Error:
			code, words, _ := strings.Cut(r.Error, ": ")
			x.end(telling{End: "error", Code: code, Words: words})
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

// covenOutput is what the tools answer, as far as a test looks.
type covenOutput struct {
	TaskID  string          `json:"task_id"`
	AgentID string          `json:"agent_id"`
	State   string          `json:"state"`
	Text    string          `json:"text"`
	Data    json.RawMessage `json:"data"`
	Files   []core.File     `json:"files"`
	Error   *core.Fault     `json:"error"`
}

func (a *covenAgent) begin(q inquiry) *exchange {
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
		told := call.told
		if told.End == "output" {
			if err := json.Unmarshal(told.Data, &o); err != nil || o.AgentID != q.to || o.TaskID == "" {
				x.breaks("agent_ask said %.200s", told.Data)
			}
			told.Text, told.Data = o.Text, o.Data
			for _, f := range o.Files {
				x.seesBody(f)
			}
		}
		x.end(told)
	}()
	return x
}

// delegate gives a task with agent_delegate, whose result comes at once, and asks
// after it with agent_result.
func (a *covenAgent) delegate(q inquiry) *exchange {
	x, call := newExchange(), a.call("agent_delegate", map[string]any{"to": q.to, "content": q.content})
	<-call.ended // every call ends, with the connection if not before
	var o covenOutput
	switch told := call.told; {
	case told.End != "output":
		x.end(told)
		return x
	case json.Unmarshal(told.Data, &o) != nil || o.AgentID != q.to:
		x.lost(fmt.Errorf("agent_delegate said %s", told.Data))
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
		if got := string(call.told.Data); got != `{"cancelled":true}` {
			return fmt.Errorf("agent_cancel said %q and %+v", got, call.told)
		}
		return nil
	}
	a.result(x.id, x)
	return x
}

// result waits for what becomes of a delegated task and ends the exchange with it.
func (a *covenAgent) result(task string, x *exchange) {
	call := a.call("agent_result", map[string]any{"task_id": task, "wait_seconds": watchdog / time.Second})
	go func() {
		<-call.ended
		var o covenOutput
		switch told := call.told; {
		case told.End != "output":
			x.end(told)
		case json.Unmarshal(told.Data, &o) != nil:
			x.lost(fmt.Errorf("agent_result said %s", told.Data))
		case o.Error != nil:
			x.end(telling{End: o.State, Text: o.Text, Code: string(o.Error.Code), Words: o.Error.Message, Retry: fmt.Sprint(o.Error.Retryable)})
		default:
			x.end(telling{End: o.State, Text: o.Text, Data: o.Data})
		}
	}()
}

func (a *covenAgent) cut() {
	a.cable.cut()
	<-a.done
}

func (a *covenAgent) leave() {
	a.link.Close(link.Reason{Cause: link.Normal})
	<-a.done
	a.cc.Close()
}

// covenAfterCut cuts off agent_ask, which ends with its connection, and a task that
// was delegated, which the agent asks after when it is back.
func covenAfterCut(t *testing.T, d *duo) string {
	const id = "phoenix"
	first := connectCovenAgent(t, d.stage, id)
	defer first.leave()
	asked, x := d.midway(t, first, inquiry{})
	task, y := d.midway(t, first, inquiry{delegate: true})
	first.cut()
	for _, x := range []*exchange{x, y} {
		if got := x.outcome(t); got.End != "lost" {
			t.Errorf("got %+v at who was cut off, want the connection lost", got)
		}
	}
	d.await(t, "left "+id)
	d.dropped(t, asked)
	second := connectCovenAgent(t, d.stage, id)
	defer second.leave()
	z := newExchange()
	second.result(y.id, z)
	d.finished(t, task)
	want := d.asks.reported
	want.Text = firstHalf + secondHalf
	same(t, z.outcome(t), want)
	return "ask cancelled, result kept"
}
