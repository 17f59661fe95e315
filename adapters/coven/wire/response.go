package wire

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// ErrNoEvent is the error of [EventOf] for a MessageResponse without an event. It does
// not become an empty event: a reader could not tell that from a real one.
var ErrNoEvent = errors.New("the response has no event: set one of thinking, text, ..., done, error or cancelled")

// ErrNegativeUsage is the error of [EventOf] for a TokenUsage that would make totals
// shrink.
var ErrNegativeUsage = errors.New("usage has a negative count: report what this call cost, each count at least 0")

// Unexplained is the message of a failure whose agent gave none.
const Unexplained = "the agent failed and did not say why"

// EventOf returns the event that a response stands for. Foreign is the whole response
// without its request id when the body does not hold all of it: unknown fields, a newer
// kind of event, an unknown state. It returns [ErrNoEvent] or [ErrNegativeUsage] for a
// response that is refused.
func EventOf(m *pb.MessageResponse) (core.Body, *core.Foreign, error) {
	if f, frame, ok := foreignOf(m); ok {
		return f, frame, nil
	}
	body, part, exact, err := bodyOf(m)
	if err != nil {
		return nil, nil, err
	}
	if exact && !hasUnknown(m) && (part == nil || !hasUnknown(part)) {
		return body, nil, nil
	}
	foreign, err := verbatim(m)
	if err != nil {
		return nil, nil, err
	}
	return body, foreign, nil
}

// bodyOf returns the body of a response, the message within it that may hold unknown
// fields, if any, and whether the body holds all of the message's known fields.
func bodyOf(m *pb.MessageResponse) (body core.Body, part proto.Message, exact bool, err error) {
	switch e := m.GetEvent().(type) {
	case *pb.MessageResponse_Thinking:
		return core.Thinking{Text: e.Thinking}, nil, true, nil
	case *pb.MessageResponse_Text:
		return core.Text{Text: e.Text}, nil, true, nil
	case *pb.MessageResponse_ToolUse:
		u := e.ToolUse
		return core.ToolCall{ID: u.GetId(), Name: u.GetName(), Input: u.GetInputJson()}, u, true, nil
	case *pb.MessageResponse_ToolState:
		u := e.ToolState
		state, known := conditions[u.GetState()]
		if !known {
			return core.ForeignFrame{Dialect: Name, Name: fmt.Sprintf("tool_state %d", u.GetState())}, nil, false, nil
		}
		exact := u == nil || u.Detail == nil || *u.Detail != ""
		return core.ToolState{ID: u.GetId(), State: state, Detail: u.GetDetail()}, u, exact, nil
	case *pb.MessageResponse_ToolResult:
		u := e.ToolResult
		return core.ToolResult{ID: u.GetId(), Output: u.GetOutput(), IsError: u.GetIsError()}, u, true, nil
	case *pb.MessageResponse_ToolApprovalRequest:
		u := e.ToolApprovalRequest
		return core.ApprovalRequested{ID: u.GetId(), Name: u.GetName(), Input: u.GetInputJson()}, u, true, nil
	case *pb.MessageResponse_File:
		u := e.File
		return core.File{Name: u.GetFilename(), MediaType: u.GetMimeType(), Data: u.GetData()}, u, true, nil
	case *pb.MessageResponse_SessionInit:
		return core.SessionStarted{Session: e.SessionInit.GetSessionId()}, e.SessionInit, true, nil
	case *pb.MessageResponse_SessionOrphaned:
		return core.SessionLost{Reason: e.SessionOrphaned.GetReason()}, e.SessionOrphaned, true, nil
	case *pb.MessageResponse_Usage:
		u := e.Usage
		if min(u.GetInputTokens(), u.GetOutputTokens(), u.GetCacheReadTokens(), u.GetCacheWriteTokens(), u.GetThinkingTokens()) < 0 {
			return nil, nil, false, ErrNegativeUsage
		}
		return core.Usage{
			Input: int64(u.GetInputTokens()), Output: int64(u.GetOutputTokens()), Thinking: int64(u.GetThinkingTokens()),
			CacheRead: int64(u.GetCacheReadTokens()), CacheWrite: int64(u.GetCacheWriteTokens()),
		}, u, true, nil
	case *pb.MessageResponse_Done:
		return core.Done{Text: e.Done.GetFullResponse()}, e.Done, true, nil
	case *pb.MessageResponse_Error:
		if e.Error == "" {
			return core.Failed{Fault: core.NewFault(core.CodeInternal, Unexplained)}, nil, false, nil
		}
		return core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", e.Error)}, nil, true, nil
	case *pb.MessageResponse_Cancelled:
		return core.Cancelled{Reason: e.Cancelled.GetReason()}, e.Cancelled, true, nil
	}
	if field, ok := FirstUnknown(m); ok {
		return core.ForeignFrame{Dialect: Name, Name: fmt.Sprintf("event %d", field)}, nil, false, nil
	}
	return nil, nil, false, ErrNoEvent
}

// ResponseOf is the inverse of [EventOf] for the request with the given id. It returns
// an unsupported Fault for a body for which Coven has no event.
func ResponseOf(request string, body core.Body, foreign *core.Foreign) (*pb.MessageResponse, error) {
	if foreign != nil && foreign.Dialect == Name && len(foreign.Wire) > 0 {
		m := new(pb.MessageResponse)
		if err := proto.Unmarshal(foreign.Wire, m); err != nil {
			return nil, core.NewFault(core.CodeInvalid, "the kept bytes of %s are not a Coven response", body.Kind()).Because(err)
		}
		m.RequestId = request
		return m, nil
	}
	if b, ok := body.(core.Text); ok { // the most frequent: one allocation
		m := &struct {
			pb.MessageResponse
			event pb.MessageResponse_Text
		}{}
		m.RequestId, m.event.Text, m.Event = request, ValidUTF8(b.Text), &m.event
		return &m.MessageResponse, nil
	}
	m := &pb.MessageResponse{RequestId: request}
	switch b := body.(type) {
	case core.Thinking:
		m.Event = &pb.MessageResponse_Thinking{Thinking: ValidUTF8(b.Text)}
	case core.ToolCall:
		m.Event = &pb.MessageResponse_ToolUse{ToolUse: &pb.ToolUse{Id: ValidUTF8(b.ID), Name: ValidUTF8(b.Name), InputJson: ValidUTF8(b.Input)}}
	case core.ToolState:
		u := &pb.ToolStateUpdate{Id: ValidUTF8(b.ID), State: states[b.State]}
		if b.Detail != "" {
			u.Detail = proto.String(ValidUTF8(b.Detail))
		}
		m.Event = &pb.MessageResponse_ToolState{ToolState: u}
	case core.ToolResult:
		m.Event = &pb.MessageResponse_ToolResult{ToolResult: &pb.ToolResult{Id: ValidUTF8(b.ID), Output: ValidUTF8(b.Output), IsError: b.IsError}}
	case core.ApprovalRequested:
		m.Event = &pb.MessageResponse_ToolApprovalRequest{
			ToolApprovalRequest: &pb.ToolApprovalRequest{Id: ValidUTF8(b.ID), Name: ValidUTF8(b.Name), InputJson: ValidUTF8(b.Input)},
		}
	case core.File:
		m.Event = &pb.MessageResponse_File{File: &pb.FileData{Filename: ValidUTF8(b.Name), MimeType: ValidUTF8(b.MediaType), Data: b.Data}}
	case core.SessionStarted:
		m.Event = &pb.MessageResponse_SessionInit{SessionInit: &pb.SessionInit{SessionId: ValidUTF8(b.Session)}}
	case core.SessionLost:
		m.Event = &pb.MessageResponse_SessionOrphaned{SessionOrphaned: &pb.SessionOrphaned{Reason: ValidUTF8(b.Reason)}}
	case core.Usage:
		m.Event = &pb.MessageResponse_Usage{Usage: &pb.TokenUsage{
			InputTokens: count(b.Input), OutputTokens: count(b.Output), ThinkingTokens: count(b.Thinking),
			CacheReadTokens: count(b.CacheRead), CacheWriteTokens: count(b.CacheWrite),
		}}
	case core.Done:
		m.Event = &pb.MessageResponse_Done{Done: &pb.Done{FullResponse: ValidUTF8(b.Text)}}
	case core.Failed:
		text := Unexplained
		if b.Fault != nil {
			text = b.Fault.Message
		}
		m.Event = &pb.MessageResponse_Error{Error: ValidUTF8(text)}
	case core.Cancelled:
		m.Event = &pb.MessageResponse_Cancelled{Cancelled: &pb.Cancelled{Reason: ValidUTF8(b.Reason)}}
	case core.ForeignFrame:
		if b.Dialect == "" || b.Dialect == Name || b.Name == "" {
			return nil, core.NewFault(core.CodeUnsupported, "Coven tells of frames of other dialects by their dialect and name")
		}
		setForeign(m, b, foreign)
	default:
		return nil, core.NewFault(core.CodeUnsupported, "Coven has no event for %s", body.Kind())
	}
	return m, nil
}

// conditions maps the states of a tool call, states is its inverse. A state that is not
// among them is foreign.
var conditions = map[pb.ToolState]core.ToolCondition{
	pb.ToolState_TOOL_STATE_PENDING:           core.ToolPending,
	pb.ToolState_TOOL_STATE_AWAITING_APPROVAL: core.ToolAwaitingApproval,
	pb.ToolState_TOOL_STATE_RUNNING:           core.ToolRunning,
	pb.ToolState_TOOL_STATE_COMPLETED:         core.ToolCompleted,
	pb.ToolState_TOOL_STATE_FAILED:            core.ToolFailed,
	pb.ToolState_TOOL_STATE_DENIED:            core.ToolDenied,
	pb.ToolState_TOOL_STATE_TIMEOUT:           core.ToolTimeout,
	pb.ToolState_TOOL_STATE_CANCELLED:         core.ToolCancelled,
}

var states = inverse(conditions)

func inverse[K, V comparable](m map[K]V) map[V]K {
	back := make(map[V]K, len(m))
	for k, v := range m {
		back[v] = k
	}
	return back
}

// verbatim keeps the response as it came, without the request id, which differs at the
// other end.
func verbatim(m *pb.MessageResponse) (*core.Foreign, error) {
	kept := &pb.MessageResponse{Event: m.GetEvent()}
	kept.ProtoReflect().SetUnknown(m.ProtoReflect().GetUnknown())
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("keep a response as it came: %w", err)
	}
	return &core.Foreign{Dialect: Name, Wire: b}, nil
}

// count returns n as an int32, clipped to what Coven can count.
func count(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
