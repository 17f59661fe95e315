package coven_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// gateway is a server whose every message the test sends, in place of this hub.
type gateway struct {
	t    *testing.T
	conn link.Conn[*pb.AgentMessage, *pb.ServerMessage]
	end  chan error
}

// clientConnect connects an agent to a gateway, in a bubble.
func clientConnect(t *testing.T, handle core.Handler) *gateway {
	t.Helper()
	server, agent := coretest.ProtoPipe[pb.AgentMessage, pb.ServerMessage](64)
	g := &gateway{t: t, conn: server, end: make(chan error, 1)}
	go func() {
		g.end <- client.Work(context.Background(), agent, core.Card{ID: "a"}, handle, client.WorkOptions{})
	}()
	if got := g.receive().GetRegister().GetAgentId(); got != "a" {
		t.Fatalf("registered as %q, want %q", got, "a")
	}
	return g
}

func (g *gateway) receive() *pb.AgentMessage {
	g.t.Helper()
	m, err := g.conn.Receive(context.Background())
	if err != nil {
		g.t.Fatalf("receive: got error %v, want a message", err)
	}
	return m
}

func (g *gateway) send(m *pb.ServerMessage) {
	g.t.Helper()
	if err := g.conn.Send(context.Background(), m); err != nil {
		g.t.Fatalf("send: got error %v, want none", err)
	}
}

func (g *gateway) welcome() { g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_Welcome{}}) }

func (g *gateway) prompt(id string) {
	g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_SendMessage{SendMessage: &pb.SendMessage{RequestId: id, Content: id}}})
}

func (g *gateway) cancel(id, reason string) {
	g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_CancelRequest{CancelRequest: &pb.CancelRequest{RequestId: id, Reason: &reason}}})
}

// hangUp ends the stream for the reason and returns what Work returned.
func (g *gateway) hangUp(r link.Reason) error {
	g.conn.Close(r)
	return <-g.end
}

func silent(context.Context, core.Request, func(core.Body) error) error { return nil }

func TestAFirstMessageOtherThanWelcomeBreaksTheProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := clientConnect(t, silent)
		g.prompt("early")
		var r *link.Reason
		if err := <-g.end; !errors.As(err, &r) || r.Cause != link.Protocol {
			t.Errorf("got %v, want a break of the protocol", err)
		}
	})
}

func TestAStatusThatRejectsTheAgentIsAFault(t *testing.T) {
	for code, want := range map[codes.Code]core.Code{
		codes.AlreadyExists: core.CodeConflict, codes.InvalidArgument: core.CodeInvalid, codes.Unauthenticated: core.CodeUnauthenticated,
	} {
		synctest.Test(t, func(t *testing.T) {
			g := clientConnect(t, silent)
			if err := g.hangUp(link.Reason{Cause: link.Protocol, Code: int(code), Text: "no"}); !errors.Is(err, &core.Fault{Code: want}) {
				t.Errorf("status %v: got %v, want a Fault %s", code, err, want)
			}
		})
	}
}

func TestALostConnectionIsReportedAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := make(chan error, 1)
		g := clientConnect(t, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			<-ctx.Done()
			_, err := client.CallTool(ctx, "agents_list", nil)
			cut <- err
			return context.Cause(ctx)
		})
		g.welcome()
		g.prompt("r")
		synctest.Wait()
		var r *link.Reason
		if err := g.hangUp(link.Reason{Cause: link.PeerGone}); !errors.As(err, &r) || r.Cause != link.PeerGone {
			t.Errorf("got %v, want the reason of the loss", err)
		}
		if err := <-cut; err == nil {
			t.Error("a tool called after the loss: got no error")
		}
	})
}

func TestAGatewayThatEndsTheStreamNormallyIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := clientConnect(t, silent)
		g.welcome()
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

func TestASilentAgentSendsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := clientConnect(t, silent)
		g.welcome()
		start := time.Now()
		if got := g.receive().GetHeartbeat(); got == nil || got.GetTimestampMs() != time.Now().UnixMilli() {
			t.Errorf("got %v, want a Heartbeat with the time", got)
		}
		if got := time.Since(start); got > 2*client.HeartbeatInterval {
			t.Errorf("the first heartbeat came after %v, want it within %v", got, 2*client.HeartbeatInterval)
		}
		g.receive()
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

func TestAGatewayThatExceedsTheLimitIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := clientConnect(t, func(context.Context, core.Request, func(core.Body) error) error {
			<-release
			return nil
		})
		g.welcome()
		const more = 100
		for i := range more {
			g.prompt(string(rune('A' + i)))
			synctest.Wait() // the first has started before the others come
		}
		g.prompt("A") // again: any answer would end the first
		synctest.Wait()
		refused := 0
		go func() { synctest.Wait(); close(release) }()
		done := 0
		for refused+done < more {
			switch m := g.receive().GetResponse(); {
			case m.GetError() != "":
				refused++
			case m.GetDone() != nil:
				done++
			}
		}
		if refused != more-66 {
			t.Errorf("refused: got %d, want %d beyond the one that runs and the 65 that wait", refused, more-66)
		}
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

func TestARequestCancelledBeforeItStartedIsAnsweredAsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := clientConnect(t, func(_ context.Context, r core.Request, _ func(core.Body) error) error {
			if r.Content != "first" {
				t.Errorf("%q was started, want it cancelled before", r.Content)
			}
			<-release
			return nil
		})
		g.welcome()
		g.prompt("first")
		g.prompt("second")
		g.cancel("second", "changed my mind")
		g.cancel("nobody's", "")
		synctest.Wait()
		close(release)
		if m := g.receive().GetResponse(); m.GetRequestId() != "first" || m.GetDone() == nil {
			t.Errorf("got %v, want first done", m)
		}
		if m := g.receive().GetResponse(); m.GetRequestId() != "second" || m.GetCancelled().GetReason() != "changed my mind" {
			t.Errorf("got %v, want second cancelled with its reason", m)
		}
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

func TestUnexpectedMessagesOfTheGatewayAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := clientConnect(t, silent)
		g.welcome()
		g.welcome()
		g.send(&pb.ServerMessage{})
		g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_RegistrationError{RegistrationError: &pb.RegistrationError{Reason: "late"}}})
		g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_ToolApproval{ToolApproval: &pb.ToolApprovalResponse{Id: "?"}}})
		g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_PackToolResult{PackToolResult: &pb.PackToolResult{RequestId: "?"}}})
		g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_InjectContext{InjectContext: &pb.InjectContext{InjectionId: "i"}}})
		if ack := g.receive().GetInjectionAck(); ack.GetInjectionId() != "i" || ack.GetAccepted() || ack.GetReason() == "" {
			t.Errorf("got %v, want the injection refused with a reason", ack)
		}
		g.prompt("r")
		if m := g.receive().GetResponse(); m.GetDone() == nil {
			t.Errorf("got %v, want the request done", m)
		}
		g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_Shutdown{Shutdown: &pb.Shutdown{Reason: "bye"}}})
		if err := <-g.end; err != nil {
			t.Errorf("got %v, want nil after a Shutdown", err)
		}
	})
}

func TestAMessageOfALaterGatewayIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := clientConnect(t, silent)
		g.welcome()
		later := new(pb.ServerMessage)
		raw := protowire.AppendTag(nil, 99, protowire.BytesType)
		if err := proto.Unmarshal(protowire.AppendString(raw, "a message of tomorrow"), later); err != nil {
			t.Fatal(err)
		}
		g.send(later)
		g.prompt("r")
		if m := g.receive().GetResponse(); m.GetRequestId() != "r" || m.GetDone() == nil {
			t.Errorf("got %v, want the request done", m)
		}
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

func TestAnEmptyResultOfAToolIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		g := clientConnect(t, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			_, err := client.CallTool(ctx, "t", nil)
			got <- err
			return nil
		})
		g.welcome()
		g.prompt("r")
		call := g.receive().GetExecutePackTool()
		g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_PackToolResult{PackToolResult: &pb.PackToolResult{RequestId: call.GetRequestId()}}})
		if err := <-got; !errors.Is(err, &core.Fault{Code: core.CodeInternal}) {
			t.Errorf("got %v, want an internal Fault", err)
		}
		g.receive()
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}
