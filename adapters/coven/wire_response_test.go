package coven_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestEveryEventOfTheSpecificationSurvivesARoundTrip(t *testing.T) {
	for name, c := range map[string]struct {
		event *pb.MessageResponse
		want  core.Body
	}{
		"thinking": {&pb.MessageResponse{Event: &pb.MessageResponse_Thinking{Thinking: "hm"}}, core.Thinking{Text: "hm"}},
		"text":     {&pb.MessageResponse{Event: &pb.MessageResponse_Text{Text: "hello"}}, core.Text{Text: "hello"}},
		"tool_use": {
			&pb.MessageResponse{Event: &pb.MessageResponse_ToolUse{ToolUse: &pb.ToolUse{Id: "t1", Name: "read", InputJson: `{"a":`}}},
			core.ToolCall{ID: "t1", Name: "read", Input: `{"a":`},
		},
		"tool_state": {
			&pb.MessageResponse{Event: &pb.MessageResponse_ToolState{ToolState: &pb.ToolStateUpdate{
				Id: "t1", State: pb.ToolState_TOOL_STATE_DENIED, Detail: proto.String("no"),
			}}},
			core.ToolState{ID: "t1", State: core.ToolDenied, Detail: "no"},
		},
		"tool_result": {
			&pb.MessageResponse{Event: &pb.MessageResponse_ToolResult{ToolResult: &pb.ToolResult{Id: "t1", Output: "o", IsError: true}}},
			core.ToolResult{ID: "t1", Output: "o", IsError: true},
		},
		"tool_approval_request": {
			&pb.MessageResponse{Event: &pb.MessageResponse_ToolApprovalRequest{
				ToolApprovalRequest: &pb.ToolApprovalRequest{Id: "t1", Name: "rm", InputJson: "{}"},
			}},
			core.ApprovalRequested{ID: "t1", Name: "rm", Input: "{}"},
		},
		"file": {
			&pb.MessageResponse{Event: &pb.MessageResponse_File{File: &pb.FileData{Filename: "a.bin", MimeType: "x/y", Data: []byte{0, 1}}}},
			core.File{Name: "a.bin", MediaType: "x/y", Data: []byte{0, 1}},
		},
		"session_init": {
			&pb.MessageResponse{Event: &pb.MessageResponse_SessionInit{SessionInit: &pb.SessionInit{SessionId: "s"}}},
			core.SessionStarted{Session: "s"},
		},
		"session_orphaned": {
			&pb.MessageResponse{Event: &pb.MessageResponse_SessionOrphaned{SessionOrphaned: &pb.SessionOrphaned{Reason: "Session expired"}}},
			core.SessionLost{Reason: "Session expired"},
		},
		"usage": {
			&pb.MessageResponse{Event: &pb.MessageResponse_Usage{Usage: &pb.TokenUsage{
				InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ThinkingTokens: 5,
			}}},
			core.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Thinking: 5},
		},
		"done": {
			&pb.MessageResponse{Event: &pb.MessageResponse_Done{Done: &pb.Done{FullResponse: "all"}}},
			core.Done{Text: "all"},
		},
		"cancelled": {
			&pb.MessageResponse{Event: &pb.MessageResponse_Cancelled{Cancelled: &pb.Cancelled{Reason: "user_requested"}}},
			core.Cancelled{Reason: "user_requested"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, foreign, err := wire.EventOf(c.event)
			if err != nil || foreign != nil {
				t.Fatalf("EventOf: got foreign %v, error %v; want neither", foreign, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			back, err := wire.ResponseOf("", got, nil)
			if err != nil {
				t.Fatalf("responseOf: got error %v, want none", err)
			}
			if diff := cmp.Diff(c.event, back, protocmp.Transform()); diff != "" {
				t.Errorf("back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheErrorOfAnAgentIsTheMessageOfAnInternalFault(t *testing.T) {
	body, foreign, err := wire.EventOf(&pb.MessageResponse{Event: &pb.MessageResponse_Error{Error: "the model is down"}})
	failed, ok := body.(core.Failed)
	if !ok || foreign != nil || err != nil {
		t.Fatalf("got %#v, %v, %v; want a core.Failed alone", body, foreign, err)
	}
	if f := failed.Fault; f.Code != core.CodeInternal || f.Message != "the model is down" || f.Retryable {
		t.Errorf("fault: got %+v, want internal with the agent's own text, not retryable", f)
	}
}

func TestAResponseWithoutAnEventIsRefused(t *testing.T) {
	body, foreign, err := wire.EventOf(&pb.MessageResponse{RequestId: "r"})
	if body != nil || foreign != nil || !errors.Is(err, wire.ErrNoEvent) {
		t.Errorf("got %#v, %v, %v; want ErrNoEvent alone", body, foreign, err)
	}
}

func TestAnUnknownWireEventStaysUnknownAndIsKeptByteForByte(t *testing.T) {
	var raw []byte
	raw = protowire.AppendTag(raw, 20, protowire.BytesType)
	raw = protowire.AppendBytes(raw, []byte("from the future"))
	m := new(pb.MessageResponse)
	if err := proto.Unmarshal(raw, m); err != nil {
		t.Fatal(err)
	}
	m.RequestId = "theirs"
	body, foreign, err := wire.EventOf(m)
	if err != nil {
		t.Fatalf("EventOf: got error %v, want none", err)
	}
	if diff := cmp.Diff(core.ForeignFrame{Dialect: "coven", Name: "event 20"}, body); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&core.Foreign{Dialect: "coven", Wire: raw}, foreign); diff != "" {
		t.Errorf("foreign (-want +got):\n%s", diff)
	}
	back, err := wire.ResponseOf("ours", body, foreign)
	if err != nil {
		t.Fatalf("responseOf: got error %v, want none", err)
	}
	m.RequestId = "ours"
	if diff := cmp.Diff(m, back, protocmp.Transform()); diff != "" {
		t.Errorf("back (-want +got):\n%s", diff)
	}
}

func TestAnUnknownToolStateIsForeign(t *testing.T) {
	for _, state := range []pb.ToolState{0, 9, -1} {
		m := &pb.MessageResponse{Event: &pb.MessageResponse_ToolState{ToolState: &pb.ToolStateUpdate{Id: "t", State: state}}}
		body, foreign, err := wire.EventOf(m)
		if _, ok := body.(core.ForeignFrame); !ok || foreign == nil || err != nil {
			t.Errorf("state %d: got %#v, %v, %v; want a foreign frame with its bytes", state, body, foreign, err)
		}
	}
}

func TestNegativeUsageIsRefused(t *testing.T) {
	_, _, err := wire.EventOf(&pb.MessageResponse{Event: &pb.MessageResponse_Usage{Usage: &pb.TokenUsage{InputTokens: 5, OutputTokens: -1}}})
	if !errors.Is(err, wire.ErrNegativeUsage) {
		t.Errorf("got error %v, want ErrNegativeUsage", err)
	}
}

func TestCountsThatDoNotFitAreClipped(t *testing.T) {
	m, err := wire.ResponseOf("r", core.Usage{Input: math.MaxInt64, Output: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if u := m.GetUsage(); u.GetInputTokens() != math.MaxInt32 || u.GetOutputTokens() != 0 {
		t.Errorf("got %v, want the largest int32 and 0", u)
	}
}

func TestBodiesThatAgentsDoNotReportHaveNoResponse(t *testing.T) {
	for _, b := range []core.Body{core.Opened{}, core.Assigned{}, core.Accepted{}, core.ApprovalDecided{}, core.Injected{}, core.Retrying{}, core.CancelRequested{}, core.ForeignFrame{}} {
		if m, err := wire.ResponseOf("r", b, nil); !errors.Is(err, &core.Fault{Code: core.CodeUnsupported}) {
			t.Errorf("%s: got %v, %v; want an unsupported Fault", b.Kind(), m, err)
		}
	}
}

// drawText draws any UTF-8 text.
func drawText(t *rapid.T, label string) string { return rapid.String().Draw(t, label) }

// drawResponse draws any response with an event, some with unknown fields in it or in the
// event.
func drawResponse(t *rapid.T) *pb.MessageResponse {
	m := &pb.MessageResponse{RequestId: drawText(t, "request")}
	var part proto.Message
	switch rapid.IntRange(2, 14).Draw(t, "event") {
	case 2:
		m.Event = &pb.MessageResponse_Thinking{Thinking: drawText(t, "thinking")}
	case 3:
		m.Event = &pb.MessageResponse_Text{Text: drawText(t, "text")}
	case 4:
		p := &pb.ToolUse{Id: drawText(t, "id"), Name: drawText(t, "name"), InputJson: drawText(t, "input")}
		m.Event, part = &pb.MessageResponse_ToolUse{ToolUse: p}, p
	case 5:
		p := &pb.ToolResult{Id: drawText(t, "id"), Output: drawText(t, "output"), IsError: rapid.Bool().Draw(t, "is error")}
		m.Event, part = &pb.MessageResponse_ToolResult{ToolResult: p}, p
	case 6:
		p := &pb.Done{FullResponse: drawText(t, "full")}
		m.Event, part = &pb.MessageResponse_Done{Done: p}, p
	case 7:
		m.Event = &pb.MessageResponse_Error{Error: drawText(t, "error")}
	case 8:
		p := &pb.FileData{Filename: drawText(t, "name"), MimeType: drawText(t, "type"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
		m.Event, part = &pb.MessageResponse_File{File: p}, p
	case 9:
		p := &pb.ToolApprovalRequest{Id: drawText(t, "id"), Name: drawText(t, "name"), InputJson: drawText(t, "input")}
		m.Event, part = &pb.MessageResponse_ToolApprovalRequest{ToolApprovalRequest: p}, p
	case 10:
		p := &pb.SessionInit{SessionId: drawText(t, "session")}
		m.Event, part = &pb.MessageResponse_SessionInit{SessionInit: p}, p
	case 11:
		p := &pb.SessionOrphaned{Reason: drawText(t, "reason")}
		m.Event, part = &pb.MessageResponse_SessionOrphaned{SessionOrphaned: p}, p
	case 12:
		n := rapid.Int32Range(0, math.MaxInt32)
		p := &pb.TokenUsage{
			InputTokens: n.Draw(t, "input"), OutputTokens: n.Draw(t, "output"), CacheReadTokens: n.Draw(t, "read"),
			CacheWriteTokens: n.Draw(t, "write"), ThinkingTokens: n.Draw(t, "thinking"),
		}
		m.Event, part = &pb.MessageResponse_Usage{Usage: p}, p
	case 13:
		p := &pb.ToolStateUpdate{Id: drawText(t, "id"), State: pb.ToolState(rapid.Int32Range(-1, 10).Draw(t, "state"))}
		if rapid.Bool().Draw(t, "has detail") {
			p.Detail = proto.String(drawText(t, "detail"))
		}
		m.Event, part = &pb.MessageResponse_ToolState{ToolState: p}, p
	case 14:
		p := &pb.Cancelled{Reason: drawText(t, "reason")}
		m.Event, part = &pb.MessageResponse_Cancelled{Cancelled: p}, p
	}
	if rapid.Bool().Draw(t, "unknown field") {
		m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 7))
	}
	if part != nil && rapid.Bool().Draw(t, "unknown field in the event") {
		part.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 98, protowire.VarintType), 8))
	}
	return m
}

func TestResponsesSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawResponse(t)
		body, foreign, err := wire.EventOf(m)
		if err != nil {
			t.Fatalf("EventOf: got error %v, want none", err)
		}
		back, err := wire.ResponseOf(m.RequestId, body, foreign)
		if err != nil {
			t.Fatalf("responseOf: got error %v, want none", err)
		}
		if diff := cmp.Diff(m, back, protocmp.Transform()); diff != "" {
			t.Fatalf("back (-want +got):\n%s", diff)
		}
	})
}

func TestEventOfLeavesTheResponseUnchanged(t *testing.T) {
	m := &pb.MessageResponse{RequestId: "r", Event: &pb.MessageResponse_Error{}}
	_, foreign, err := wire.EventOf(m)
	if err != nil || foreign == nil {
		t.Fatalf("got foreign %v, error %v; want the response kept", foreign, err)
	}
	if m.RequestId != "r" {
		t.Errorf("the request id of the original: got %q, want it untouched", m.RequestId)
	}
}

func TestAFrameOfAnotherDialectPassesThroughAResponse(t *testing.T) {
	plan := core.ForeignFrame{Dialect: "editor", Name: "plan"}
	for name, c := range map[string]struct{ frame, want string }{
		"JSON": {`{"entries":[]}`, `{"entries":[]}`}, "no JSON": {`{"a":1,"a":2}`, ""}, "its name alone": {"", ""},
	} {
		m, err := wire.ResponseOf("r", plan, &core.Foreign{Dialect: "editor", JSON: []byte(c.frame)})
		if err != nil {
			t.Fatalf("%s: got %v, want a response", name, err)
		}
		if m.GetEvent() != nil {
			t.Errorf("%s: got the event %v, want none that other gateways would take for something else", name, m.GetEvent())
		}
		got, foreign, err := wire.EventOf(m)
		if got != plan || err != nil || c.want != "" && (foreign == nil || foreign.Dialect != "editor" || string(foreign.JSON) != c.want) || c.want == "" && foreign != nil {
			t.Errorf("%s: got %#v, %+v, %v; want the plan with %q", name, got, foreign, err, c.want)
		}
	}
}
