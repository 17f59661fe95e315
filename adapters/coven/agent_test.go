package coven_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// wired returns the hub's end and the agent's end of a connection.
func wired(messages int) (link.Conn[*pb.AgentMessage, *pb.ServerMessage], link.Conn[*pb.ServerMessage, *pb.AgentMessage]) {
	return coretest.ProtoPipe[pb.AgentMessage, pb.ServerMessage](messages)
}

// agent is an agent whose every message the test sends.
type agent struct {
	t    *testing.T
	conn link.Conn[*pb.ServerMessage, *pb.AgentMessage]
	end  chan link.Reason
}

// connect opens a stream to the hub. The test ends it by hangUp, or makes the hub end it.
func connect(t *testing.T, h *hub.Hub, opts coven.Options) *agent {
	t.Helper()
	server, client := wired(64)
	a := &agent{t: t, conn: client, end: make(chan link.Reason, 1)}
	go func() { a.end <- coven.Serve(context.Background(), h, server, &opts) }()
	t.Cleanup(func() { client.Close(link.Reason{Cause: link.Normal}) })
	return a
}

// join connects and registers, and returns the Welcome.
func join(t *testing.T, h *hub.Hub, opts coven.Options, id string, features ...string) (*agent, *pb.Welcome) {
	t.Helper()
	a := connect(t, h, opts)
	a.register(id, features...)
	w := a.receive().GetWelcome()
	if w == nil {
		t.Fatalf("the first message to %s is no Welcome", id)
	}
	return a, w
}

func (a *agent) send(m *pb.AgentMessage) {
	a.t.Helper()
	if err := a.conn.Send(context.Background(), m); err != nil {
		a.t.Fatalf("send: got error %v, want none", err)
	}
}

func (a *agent) register(id string, features ...string) {
	a.t.Helper()
	a.send(&pb.AgentMessage{Payload: &pb.AgentMessage_Register{Register: &pb.RegisterAgent{AgentId: id, ProtocolFeatures: features}}})
}

func (a *agent) respond(m *pb.MessageResponse) {
	a.t.Helper()
	a.send(&pb.AgentMessage{Payload: &pb.AgentMessage_Response{Response: m}})
}

func (a *agent) text(request, text string) {
	a.t.Helper()
	a.respond(&pb.MessageResponse{RequestId: request, Event: &pb.MessageResponse_Text{Text: text}})
}

func (a *agent) done(request, full string) {
	a.t.Helper()
	a.respond(&pb.MessageResponse{RequestId: request, Event: &pb.MessageResponse_Done{Done: &pb.Done{FullResponse: full}}})
}

func (a *agent) fail(request, text string) {
	a.t.Helper()
	a.respond(&pb.MessageResponse{RequestId: request, Event: &pb.MessageResponse_Error{Error: text}})
}

func (a *agent) call(id, tool, input string) {
	a.t.Helper()
	a.send(&pb.AgentMessage{Payload: &pb.AgentMessage_ExecutePackTool{
		ExecutePackTool: &pb.ExecutePackTool{RequestId: id, ToolName: tool, InputJson: input},
	}})
}

// receive waits for the next message.
func (a *agent) receive() *pb.ServerMessage {
	a.t.Helper()
	m, err := a.conn.Receive(context.Background())
	if err != nil {
		a.t.Fatalf("receive: got error %v, want a message", err)
	}
	return m
}

// prompt waits for the next message, which must be a SendMessage.
func (a *agent) prompt() *pb.SendMessage {
	a.t.Helper()
	m := a.receive()
	if m.GetSendMessage() == nil {
		a.t.Fatalf("got %v, want a SendMessage", m)
	}
	return m.GetSendMessage()
}

// expect waits for the next message, which must be want.
func (a *agent) expect(want *pb.ServerMessage) {
	a.t.Helper()
	if diff := cmp.Diff(want, a.receive(), protocmp.Transform()); diff != "" {
		a.t.Errorf("message (-want +got):\n%s", diff)
	}
}

// expectEnd waits until the hub has ended the stream, and returns why.
func (a *agent) expectEnd() link.Reason {
	a.t.Helper()
	return <-a.end
}

// hangUp ends the stream normally and waits until the hub has noticed.
func (a *agent) hangUp() {
	a.t.Helper()
	a.conn.Close(link.Reason{Cause: link.Normal})
	<-a.end
}

// asker is a requester without a dialect.
type asker struct {
	t      *testing.T
	s      *hub.Session
	events map[*task.Task][]core.Event // read and not yet returned
}

func ask(t *testing.T, h *hub.Hub) *asker {
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: "asker"}, Dialect: "test"})
	t.Cleanup(func() { s.Close(nil) })
	return &asker{t, s, map[*task.Task][]core.Event{}}
}

func (a *asker) open(req core.Request) *task.Task {
	a.t.Helper()
	task, err := a.s.Open(req, hub.OpenOptions{})
	if err != nil {
		a.t.Fatalf("open: got error %v, want none", err)
	}
	return task
}

// question asks an agent a question.
func (a *asker) question(agent, content string) *task.Task {
	a.t.Helper()
	return a.open(core.Request{To: core.ToAgent(core.AgentID(agent)), Content: content})
}

// until reads the events of a task until one of the kind has come, and returns it.
func (a *asker) until(task *task.Task, kind core.Kind) core.Event {
	a.t.Helper()
	for {
		for len(a.events[task]) > 0 {
			e := a.events[task][0]
			a.events[task] = a.events[task][1:]
			switch {
			case e.Body.Kind() == kind:
				return e
			case e.Body.Kind().Ends():
				a.t.Fatalf("got %#v, want %s", e.Body, kind)
			}
		}
		b, err := a.s.Next(context.Background())
		if err != nil {
			a.t.Fatalf("waiting for %s: got error %v", kind, err)
		}
		a.events[b.Task] = append(a.events[b.Task], b.Events...)
	}
}

// kinds lists the kinds of a task's events.
func kinds(task *task.Task) string {
	var ks []string
	for _, e := range task.Events() {
		ks = append(ks, e.Body.Kind().String())
	}
	return strings.Join(ks, " ")
}

func isFault(err error, code core.Code) bool { return errors.Is(err, &core.Fault{Code: code}) }

// bubble runs a test under a fake clock, with a hub whose promises are checked.
func bubble(t *testing.T, opts hub.Options, test func(t *testing.T, h *hub.Hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, coretest.NewHub(t, opts)) })
}

// after waits in the bubble.
func after(d time.Duration) { <-time.After(d) }

func newHub(t testing.TB, opts hub.Options) *hub.Hub { return coretest.NewHub(t, opts) }

// joinObserver reports every agent that joins.
type joinObserver struct{ joined chan core.AgentID }

func (e *joinObserver) Joined(c core.Card)               { e.joined <- c.ID }
func (e *joinObserver) Left(core.AgentID, bool)          {}
func (e *joinObserver) Appended(core.TaskID, core.Event) {}
func (e *joinObserver) Recorded(core.TaskID, uint64)     {}
