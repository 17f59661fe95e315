package coven_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestOnlyAnAgentThatAsksGetsTheTraceOfItsRequest(t *testing.T) {
	in := core.Trace{Parent: traceparent, State: "a=b"}
	for feature, want := range map[string]core.Trace{"trace_context": in, "token_usage": {}} {
		bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
			a, _ := join(t, h, coven.Options{}, "a", feature)
			s := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
			defer s.Close(nil)
			for _, given := range []core.Trace{in, {}} {
				if given.Parent == "" {
					want = core.Trace{}
				}
				task, err := s.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Unwatched: true, Trace: given})
				if err != nil {
					t.Fatal(err)
				}
				p := a.prompt()
				if got := wire.TraceOf(p); got != want {
					t.Errorf("with %s, in %+v: got %+v, want %+v", feature, given, got, want)
				}
				if want == (core.Trace{}) && len(p.ProtoReflect().GetUnknown()) > 0 {
					t.Errorf("with %s, in %+v: got fields that the protocol does not have", feature, given)
				}
				a.done(string(task.ID()), "")
			}
		})
	}
}

func TestACallOfAToolBringsATrace(t *testing.T) {
	malformed := core.Trace{Parent: "00-1-2-01"}
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		b, _ := join(t, h, coven.Options{}, "b", "trace_context", "max_concurrent=9")
		for id, given := range map[string]core.Trace{"1": {Parent: traceparent, State: "a=b"}, "2": {}, "3": malformed} {
			call := &pb.ExecutePackTool{RequestId: id, ToolName: "agent_delegate", InputJson: `{"to":"b","content":"?"}`}
			wire.SetTrace(call, given)
			a.send(&pb.AgentMessage{Payload: &pb.AgentMessage_ExecutePackTool{ExecutePackTool: call}})
			p := b.prompt()
			want := given
			if given == malformed {
				want = core.Trace{}
			}
			if got := wire.TraceOf(p); got != want {
				t.Errorf("call %s: got %+v, want %+v", id, got, want)
			}
			a.result()
			b.done(p.GetRequestId(), "")
		}
		if got := h.Counters()["coven.ignored.unknown_fields"]; got != 0 {
			t.Errorf("ignored fields: got %d, want none", got)
		}
		other := &pb.ExecutePackTool{RequestId: "4", ToolName: "agents_list"}
		wire.SetTrace(other, core.Trace{Parent: traceparent})
		other.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(other.ProtoReflect().GetUnknown(), 1003, protowire.BytesType), "x"))
		a.send(&pb.AgentMessage{Payload: &pb.AgentMessage_ExecutePackTool{ExecutePackTool: other}})
		a.result()
		if got := h.Counters()["coven.ignored.unknown_fields"]; got != 1 {
			t.Errorf("a field beside the trace: got %d ignored, want 1", got)
		}
	})
}
