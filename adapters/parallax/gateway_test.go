package parallax_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

type gatewayEnd = coretest.End[*pb.ControlPlaneToAgent, *pb.AgentToControlPlane]

// gateway returns the stream of an agent of the gateway that has registered.
func (s *setup) gateway(opts parallax.Options) *gatewayEnd {
	s.Helper()
	return s.gatewayWith(opts, nil)
}

// gatewayWith is gateway for an agent with metadata.
func (s *setup) gatewayWith(opts parallax.Options, metadata map[string]string) *gatewayEnd {
	s.Helper()
	agent, conn := coretest.Pipe[*pb.AgentToControlPlane, *pb.ControlPlaneToAgent](4)
	ended := make(chan link.Reason, 1)
	go func() {
		ended <- parallax.ServeGateway(context.Background(), s.hub, agent, &parallax.GatewayOptions{Options: opts})
	}()
	s.Cleanup(func() {
		_ = conn.Close(link.Reason{Cause: link.Normal})
		<-ended
		synctest.Wait()
	})
	hello := &pb.AgentHello{AgentId: "edge", Capabilities: []string{"analysis"}, Metadata: metadata}
	if err := conn.Send(s.Context(), &pb.AgentToControlPlane{RequestId: "h", Payload: &pb.AgentToControlPlane_Hello{Hello: hello}}); err != nil {
		s.Fatal(err)
	}
	if m, err := conn.Receive(s.Context()); err != nil || !m.GetAck().GetAccepted() {
		s.Fatalf("got %v and %v, want it accepted", m, err)
	}
	return conn
}

func TestTheGatewayLimitsTheSizeOfItsOwnMessages(t *testing.T) {
	withHub(t, func(s *setup) {
		conn := s.gateway(parallax.Options{MaxMessageBytes: 1500})
		a := s.requester()
		// A number takes two bytes as JSON and eleven as protobuf.
		task := a.open(core.Request{To: core.ToAgent("edge"), Content: "sum", Data: json.RawMessage(`{"n":[` + strings.TrimSuffix(strings.Repeat("1,", 200), ",") + `]}`)})
		synctest.Wait()
		if got := task.Answer().Fault; got == nil || got.Code != core.CodeTooLarge {
			s.Errorf("got %v, want the task failed as too large", got)
		}
		task = a.open(core.Request{To: core.ToAgent("edge"), Content: "sum", Data: json.RawMessage(`{"n":[1,2.5,9007199254740993]}`)})
		m, err := conn.Receive(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		n := m.GetTaskRequest().GetData().GetFields()["n"].GetListValue().GetValues()
		if len(n) != 3 || n[0].GetNumberValue() != 1 || n[1].GetNumberValue() != 2.5 || n[2].GetStringValue() != "9007199254740993" {
			s.Errorf("got %v, want two numbers and the digits of the third", n)
		}
		if err := conn.Send(s.Context(), &pb.AgentToControlPlane{Payload: &pb.AgentToControlPlane_TaskResult{
			TaskResult: &pb.TaskResult{TaskId: string(task.ID()), ValueJson: "12", Confidence: 0.5, Reasoning: "it adds up"},
		}}); err != nil {
			s.Fatal(err)
		}
		synctest.Wait()
		answer, thought := task.Answer(), ""
		for _, e := range task.Events() {
			if b, ok := e.Body.(core.Thinking); ok {
				thought += b.Text
			}
		}
		if string(answer.Data) != "12" || thought != "it adds up" {
			s.Errorf("got %s after thinking %q, want 12 and the reasoning", answer.Data, thought)
		}
	})
}

func TestAnAnswerFromAnotherConnectionIsRefused(t *testing.T) {
	withHub(t, func(s *setup) {
		conn := s.gateway(parallax.Options{})
		thief := s.registered(parallax.Options{}, `{"agentId":"thief","capabilities":["analysis"]}`)
		a := s.requester()
		task := a.open(core.Request{To: core.ToAgent("edge"), Content: "sum"})
		if _, err := conn.Receive(s.Context()); err != nil {
			s.Fatal(err)
		}
		thief.send(`{"type":"task_result","id":"1","payload":{"taskId":"` + string(task.ID()) + `","result":"stolen"}}`)
		thief.expectError(wire.CodeTaskNotHeld)
		if end := task.Answer().End; end != 0 {
			s.Errorf("got the task ended as %s, want it running", end)
		}
	})
}
