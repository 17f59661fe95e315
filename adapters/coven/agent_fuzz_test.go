package coven_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// everyMessage returns every message that an agent can send, with every event of a response
// and every field set. Strings are the id of the request.
func everyMessage(request string) []*pb.AgentMessage {
	var all []*pb.AgentMessage
	payloads := new(pb.AgentMessage).ProtoReflect().Descriptor().Oneofs().ByName("payload").Fields()
	for i := range payloads.Len() {
		events := payloads.Get(i).Message().Oneofs()
		choices := 1
		if events.Len() > 0 && !events.Get(0).IsSynthetic() {
			choices = events.Get(0).Fields().Len()
		}
		for choice := range choices {
			m := new(pb.AgentMessage)
			populate(m.ProtoReflect().Mutable(payloads.Get(i)).Message(), request, choice)
			all = append(all, m)
		}
	}
	return all
}

// populate sets every field, and the given choice of a oneof.
func populate(m protoreflect.Message, text string, choice int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() && o.Fields().Get(choice) != f {
			continue
		}
		switch {
		case f.IsList():
			m.Mutable(f).List().Append(protoreflect.ValueOfString(text))
		case f.Kind() == protoreflect.MessageKind:
			populate(m.Mutable(f).Message(), text, choice)
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(text))
		case f.Kind() == protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes([]byte(text)))
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		case f.Kind() == protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(1))
		case f.Kind() == protoreflect.Int32Kind:
			m.Set(f, protoreflect.ValueOfInt32(1))
		case f.Kind() == protoreflect.Int64Kind:
			m.Set(f, protoreflect.ValueOfInt64(1))
		}
	}
}

func TestEveryMessageOfAnAgentIsAmongTheSeeds(t *testing.T) {
	var messages, events int
	for _, m := range everyMessage("r") {
		messages++
		if r := m.GetResponse(); r != nil && r.GetEvent() != nil {
			events++
		}
	}
	if events != 13 || messages != events+4 {
		t.Errorf("got %d messages with %d events, want the 13 of the specification and the 4 other messages", messages, events)
	}
}

// FuzzAnAgentMaySendAnything sends anything as an agent that has a request, "r" in the
// input. The request ends, another agent is not disturbed, and every promise holds.
func FuzzAnAgentMaySendAnything(f *testing.F) {
	var all []*pb.AgentMessage
	for _, m := range everyMessage("r") {
		f.Add(encode(f, m))
		f.Add(encode(f, m, m))
		all = append(all, m)
	}
	f.Add(encode(f, all...))
	f.Add(encode(f, &pb.AgentMessage{}, &pb.AgentMessage{Payload: &pb.AgentMessage_Response{Response: &pb.MessageResponse{RequestId: "r"}}}))
	call := &pb.ExecutePackTool{RequestId: "c", ToolName: "agent_ask", InputJson: `{"to":"other","content":"hello"}`}
	f.Add(encode(f, &pb.AgentMessage{Payload: &pb.AgentMessage_ExecutePackTool{ExecutePackTool: call}}))
	f.Add([]byte{0xff})

	f.Fuzz(func(t *testing.T, raw []byte) {
		bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
			a, _ := join(t, h, coven.Options{}, "a", "cancellation", "injection")
			hire(t, h, core.Card{ID: "other", MaxConcurrent: 4}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
				return say(core.Text{Text: r.Content})
			})
			q := ask(t, h)
			asked := q.question("a", "go on")
			request := a.prompt().GetRequestId()
			var drained chan struct{}
			for r := bytes.NewReader(raw); ; {
				m := new(pb.AgentMessage)
				if protodelim.UnmarshalFrom(r, m) != nil {
					break // the transport refuses it
				}
				if m.GetResponse().GetRequestId() == "r" {
					m.GetResponse().RequestId = request
				}
				if drained == nil {
					drained = make(chan struct{})
					go func() { // the agent reads everything
						defer close(drained)
						for {
							if _, err := a.conn.Receive(context.Background()); err != nil {
								return
							}
						}
					}()
				}
				if a.conn.Send(context.Background(), m) != nil {
					break // the hub has ended the stream
				}
			}
			next := q.question("other", "are you well?")
			after(time.Second)
			synctest.Wait()
			if got := next.Answer(); got.End != core.KindDone || got.Text != "are you well?" {
				t.Errorf("the other agent: got %+v, want its answer", got)
			}
			a.hangUp()
			if drained != nil {
				<-drained
			}
			synctest.Wait()
			if got := asked.State(); got != task.Ended {
				t.Errorf("the request: got it %s, want it ended with the connection", got)
			}
		})
	})
}

// encode encodes messages, each after its length.
func encode(f *testing.F, messages ...*pb.AgentMessage) []byte {
	f.Helper()
	var b bytes.Buffer
	for _, m := range messages {
		if _, err := protodelim.MarshalTo(&b, m); err != nil {
			f.Fatal(err)
		}
	}
	return b.Bytes()
}
