package coven_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// stream encodes messages, each after its length.
func stream(t testing.TB, messages ...*pb.ServerMessage) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, m := range messages {
		if _, err := protodelim.MarshalTo(&b, m); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// FuzzAHubMaySendAnything sends anything to an agent that asks for approvals and tools: its Work returns, with a reason, once the hub hangs up.
func FuzzAHubMaySendAnything(f *testing.F) {
	welcome := &pb.ServerMessage{Payload: &pb.ServerMessage_Welcome{Welcome: &pb.Welcome{AgentId: "a"}}}
	request := func(id string) *pb.ServerMessage {
		return &pb.ServerMessage{Payload: &pb.ServerMessage_SendMessage{SendMessage: &pb.SendMessage{
			RequestId: id, ThreadId: "t", Content: "go", Attachments: []*pb.FileAttachment{{Filename: "f", Data: []byte{1}}},
		}}}
	}
	approval := &pb.ServerMessage{Payload: &pb.ServerMessage_ToolApproval{ToolApproval: &pb.ToolApprovalResponse{Id: "tool", Approved: true, ApproveAll: true}}}
	inject := &pb.ServerMessage{Payload: &pb.ServerMessage_InjectContext{InjectContext: &pb.InjectContext{InjectionId: "i", Content: "c", Source: proto.String("s"), Priority: 9}}}
	cancel := &pb.ServerMessage{Payload: &pb.ServerMessage_CancelRequest{CancelRequest: &pb.CancelRequest{RequestId: "r", Reason: proto.String("why")}}}
	result := &pb.ServerMessage{Payload: &pb.ServerMessage_PackToolResult{PackToolResult: &pb.PackToolResult{RequestId: "x", Result: &pb.PackToolResult_Error{Error: "loop: \n\n{"}}}}
	shutdown := &pb.ServerMessage{Payload: &pb.ServerMessage_Shutdown{Shutdown: &pb.Shutdown{Reason: "bye"}}}
	refusal := &pb.ServerMessage{Payload: &pb.ServerMessage_RegistrationError{RegistrationError: &pb.RegistrationError{Reason: "taken", SuggestedId: "a-1"}}}
	f.Add(stream(f, welcome, request("r"), request("s"), approval, approval, inject, cancel, result, shutdown))
	f.Add(stream(f, welcome, welcome, request("r"), request("r"), request(""), cancel, cancel, refusal, &pb.ServerMessage{}))
	f.Add(stream(f, welcome, shutdown, shutdown, request("r"), approval))
	f.Add(stream(f, refusal, welcome, request("r")))
	f.Add(stream(f, request("r")))
	f.Add(stream(f, shutdown))
	f.Add([]byte{})

	f.Fuzz(func(t *testing.T, raw []byte) {
		synctest.Test(t, func(t *testing.T) {
			server, agent := coretest.ProtoPipe[pb.AgentMessage, pb.ServerMessage](4)
			worked := make(chan error, 1)
			decided := make(demanding, 1)
			go func() {
				worked <- client.Work(context.Background(), agent, core.Card{ID: "a", MaxConcurrent: 2}, decided.handle, client.WorkOptions{
					Injected: func(in core.Injected) (func(), string) {
						if in.Content == "" {
							return nil, in.Source
						}
						return func() {}, ""
					},
					Decided: func(d core.ApprovalDecided) {
						select {
						case decided <- d:
						default: // nobody waits
						}
					},
				})
			}()
			received := make(chan struct{})
			go func() {
				defer close(received)
				for {
					if _, err := server.Receive(context.Background()); err != nil {
						return
					}
				}
			}()
			for r := bytes.NewReader(raw); ; {
				m := new(pb.ServerMessage)
				if protodelim.UnmarshalFrom(r, m) != nil || server.Send(context.Background(), m) != nil {
					break // the transport refuses it, or the agent has left
				}
			}
			<-time.After(time.Minute)
			server.Close(link.Reason{Cause: link.Normal})
			err := <-worked
			<-received
			var fault *core.Fault
			var reason *link.Reason
			if err != nil && !errors.As(err, &fault) && !errors.As(err, &reason) {
				t.Errorf("got %v, want nothing, a Fault or a Reason", err)
			}
		})
	})
}

// demanding is the decisions for a handler that asks for an approval and a tool for every
// request.
type demanding chan core.ApprovalDecided

func (c demanding) handle(ctx context.Context, r core.Request, say func(core.Body) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := say(core.ApprovalRequested{ID: "tool", Name: "n"}); err != nil {
		return err
	}
	select {
	case <-c:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if _, err := client.CallTool(ctx, "agents_list", nil); err != nil {
		return err
	}
	return say(core.Text{Text: r.Content})
}
