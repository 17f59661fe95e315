package coven

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// errNoEvent is a MessageResponse that says nothing at all. It is not turned into
// an empty event of some kind: a reader could not tell it from a real one.
var errNoEvent = errors.New("the response has no event: set one of thinking, text, ..., done, error or cancelled")

// errNegativeUsage is a TokenUsage that would make totals shrink.
var errNegativeUsage = errors.New("usage has a negative count: report what this call cost, each count at least 0")

// Unexplained is the message of a failure whose agent gave none.
const Unexplained = "the agent failed and did not say why"

// eventOf returns what a response says about its request. Foreign is the whole
// response, but for its request id, when the body alone does not hold all of it:
// unknown fields, a kind of event that is newer than this hub, a state without a
// name. It returns an error that says what to change when the response has no
// event or one that cannot be true.
func eventOf(m *wire.MessageResponse) (core.Body, *core.Foreign, error) {
	body, part, exact, err := bodyOf(m)
	if err != nil {
		return nil, nil, err
	}
	if exact && !unknown(m) && (part == nil || !unknown(part)) {
		return body, nil, nil
	}
	foreign, err := verbatim(m)
	if err != nil {
		return nil, nil, err
	}
	return body, foreign, nil
}

// bodyOf returns the body of a response, the message within it, if any, that may
// hold unknown fields, and whether the body holds all that the message says.
func bodyOf(m *wire.MessageResponse) (body core.Body, part proto.Message, exact bool, err error) {
	switch e := m.GetEvent().(type) {
	case *wire.MessageResponse_Thinking:
		return core.Thinking{Text: e.Thinking}, nil, true, nil
	case *wire.MessageResponse_Text:
		return core.Text{Text: e.Text}, nil, true, nil
	case *wire.MessageResponse_ToolUse:
		u := e.ToolUse
		return core.ToolCall{ID: u.GetId(), Name: u.GetName(), Input: u.GetInputJson()}, u, true, nil
	case *wire.MessageResponse_ToolState:
		u := e.ToolState
		state, known := conditions[u.GetState()]
		if !known {
			return core.ForeignFrame{Dialect: Name, Name: fmt.Sprintf("tool_state %d", u.GetState())}, nil, false, nil
		}
		exact := u == nil || u.Detail == nil || *u.Detail != ""
		return core.ToolState{ID: u.GetId(), State: state, Detail: u.GetDetail()}, u, exact, nil
	case *wire.MessageResponse_ToolResult:
		u := e.ToolResult
		return core.ToolResult{ID: u.GetId(), Output: u.GetOutput(), IsError: u.GetIsError()}, u, true, nil
	case *wire.MessageResponse_ToolApprovalRequest:
		u := e.ToolApprovalRequest
		return core.ApprovalRequested{ID: u.GetId(), Name: u.GetName(), Input: u.GetInputJson()}, u, true, nil
	case *wire.MessageResponse_File:
		u := e.File
		return core.File{Name: u.GetFilename(), MediaType: u.GetMimeType(), Data: u.GetData()}, u, true, nil
	case *wire.MessageResponse_SessionInit:
		return core.SessionStarted{Session: e.SessionInit.GetSessionId()}, e.SessionInit, true, nil
	case *wire.MessageResponse_SessionOrphaned:
		return core.SessionLost{Reason: e.SessionOrphaned.GetReason()}, e.SessionOrphaned, true, nil
	case *wire.MessageResponse_Usage:
		u := e.Usage
		if min(u.GetInputTokens(), u.GetOutputTokens(), u.GetCacheReadTokens(), u.GetCacheWriteTokens(), u.GetThinkingTokens()) < 0 {
			return nil, nil, false, errNegativeUsage
		}
		return core.Usage{
			Input: int64(u.GetInputTokens()), Output: int64(u.GetOutputTokens()), Thinking: int64(u.GetThinkingTokens()),
			CacheRead: int64(u.GetCacheReadTokens()), CacheWrite: int64(u.GetCacheWriteTokens()),
		}, u, true, nil
	case *wire.MessageResponse_Done:
		return core.Done{Text: e.Done.GetFullResponse()}, e.Done, true, nil
	case *wire.MessageResponse_Error:
		if e.Error == "" {
			return core.Failed{Fault: core.NewFault(core.CodeInternal, Unexplained)}, nil, false, nil
		}
		return core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", e.Error)}, nil, true, nil
	case *wire.MessageResponse_Cancelled:
		return core.Cancelled{Reason: e.Cancelled.GetReason()}, e.Cancelled, true, nil
	}
	if field, ok := firstUnknown(m); ok {
		return core.ForeignFrame{Dialect: Name, Name: fmt.Sprintf("event %d", field)}, nil, false, nil
	}
	return nil, nil, false, errNoEvent
}

// ResponseOf is the inverse of eventOf for the request with the given id. It
// returns an unsupported Fault for a body that Coven has no event for.
func ResponseOf(request string, body core.Body, foreign *core.Foreign) (*wire.MessageResponse, error) {
	if foreign != nil && foreign.Dialect == Name && len(foreign.Wire) > 0 {
		m := new(wire.MessageResponse)
		if err := proto.Unmarshal(foreign.Wire, m); err != nil {
			return nil, core.NewFault(core.CodeInvalid, "the kept bytes of %s are not a Coven response", body.Kind()).Because(err)
		}
		m.RequestId = request
		return m, nil
	}
	if b, ok := body.(core.Text); ok { // most are: in one piece of memory
		m := &struct {
			wire.MessageResponse
			event wire.MessageResponse_Text
		}{}
		m.RequestId, m.event.Text, m.Event = request, ValidUTF8(b.Text), &m.event
		return &m.MessageResponse, nil
	}
	m := &wire.MessageResponse{RequestId: request}
	switch b := body.(type) {
	case core.Thinking:
		m.Event = &wire.MessageResponse_Thinking{Thinking: ValidUTF8(b.Text)}
	case core.ToolCall:
		m.Event = &wire.MessageResponse_ToolUse{ToolUse: &wire.ToolUse{Id: ValidUTF8(b.ID), Name: ValidUTF8(b.Name), InputJson: ValidUTF8(b.Input)}}
	case core.ToolState:
		u := &wire.ToolStateUpdate{Id: ValidUTF8(b.ID), State: states[b.State]}
		if b.Detail != "" {
			u.Detail = proto.String(ValidUTF8(b.Detail))
		}
		m.Event = &wire.MessageResponse_ToolState{ToolState: u}
	case core.ToolResult:
		m.Event = &wire.MessageResponse_ToolResult{ToolResult: &wire.ToolResult{Id: ValidUTF8(b.ID), Output: ValidUTF8(b.Output), IsError: b.IsError}}
	case core.ApprovalRequested:
		m.Event = &wire.MessageResponse_ToolApprovalRequest{
			ToolApprovalRequest: &wire.ToolApprovalRequest{Id: ValidUTF8(b.ID), Name: ValidUTF8(b.Name), InputJson: ValidUTF8(b.Input)},
		}
	case core.File:
		m.Event = &wire.MessageResponse_File{File: &wire.FileData{Filename: ValidUTF8(b.Name), MimeType: ValidUTF8(b.MediaType), Data: b.Data}}
	case core.SessionStarted:
		m.Event = &wire.MessageResponse_SessionInit{SessionInit: &wire.SessionInit{SessionId: ValidUTF8(b.Session)}}
	case core.SessionLost:
		m.Event = &wire.MessageResponse_SessionOrphaned{SessionOrphaned: &wire.SessionOrphaned{Reason: ValidUTF8(b.Reason)}}
	case core.Usage:
		m.Event = &wire.MessageResponse_Usage{Usage: &wire.TokenUsage{
			InputTokens: count(b.Input), OutputTokens: count(b.Output), ThinkingTokens: count(b.Thinking),
			CacheReadTokens: count(b.CacheRead), CacheWriteTokens: count(b.CacheWrite),
		}}
	case core.Done:
		m.Event = &wire.MessageResponse_Done{Done: &wire.Done{FullResponse: ValidUTF8(b.Text)}}
	case core.Failed:
		text := Unexplained
		if b.Fault != nil {
			text = b.Fault.Message
		}
		m.Event = &wire.MessageResponse_Error{Error: ValidUTF8(text)}
	case core.Cancelled:
		m.Event = &wire.MessageResponse_Cancelled{Cancelled: &wire.Cancelled{Reason: ValidUTF8(b.Reason)}}
	default:
		return nil, core.NewFault(core.CodeUnsupported, "Coven has no event for %s", body.Kind())
	}
	return m, nil
}

// conditions and states translate the life of a tool call. A state without a name
// here is foreign.
var conditions = map[wire.ToolState]core.ToolCondition{
	wire.ToolState_TOOL_STATE_PENDING:           core.ToolPending,
	wire.ToolState_TOOL_STATE_AWAITING_APPROVAL: core.ToolAwaitingApproval,
	wire.ToolState_TOOL_STATE_RUNNING:           core.ToolRunning,
	wire.ToolState_TOOL_STATE_COMPLETED:         core.ToolCompleted,
	wire.ToolState_TOOL_STATE_FAILED:            core.ToolFailed,
	wire.ToolState_TOOL_STATE_DENIED:            core.ToolDenied,
	wire.ToolState_TOOL_STATE_TIMEOUT:           core.ToolTimeout,
	wire.ToolState_TOOL_STATE_CANCELLED:         core.ToolCancelled,
}

var states = inverse(conditions)

func inverse[K, V comparable](m map[K]V) map[V]K {
	back := make(map[V]K, len(m))
	for k, v := range m {
		back[v] = k
	}
	return back
}

// verbatim keeps the response as it came, but for the request id, which is not
// the same at the other side.
func verbatim(m *wire.MessageResponse) (*core.Foreign, error) {
	kept := &wire.MessageResponse{Event: m.GetEvent()}
	kept.ProtoReflect().SetUnknown(m.ProtoReflect().GetUnknown())
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("keep a response as it came: %w", err)
	}
	return &core.Foreign{Dialect: Name, Wire: b}, nil
}

// unknown reports whether m itself has fields that this hub does not know.
func unknown(m proto.Message) bool { return len(m.ProtoReflect().GetUnknown()) > 0 }

// firstUnknown returns the number of the first field of m that this hub does not know.
func firstUnknown(m proto.Message) (protowire.Number, bool) {
	field, _, n := protowire.ConsumeTag(m.ProtoReflect().GetUnknown())
	return field, n > 0
}

// count is n as Coven counts; what does not fit is the most that does.
func count(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
