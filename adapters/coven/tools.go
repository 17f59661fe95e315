package coven

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/tool"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// executeTool starts a tool of the hub or of a pack for the agent. It never waits for the tool:
// its result comes by the pump, so that the agent's other messages go on being
// read. Its error says that the link is closed.
func (s *session) executeTool(ctx context.Context, m *wire.ExecutePackTool) error {
	call := m.GetRequestId()
	if refusal := s.admitTool(m); refusal != "" {
		s.hub.Count(Name + ".refused.tool_call")
		return s.send(ctx, toolFailure(call, refusal), nil)
	}
	input := m.GetInputJson()
	if input == "" {
		input = "{}" // proto3 does not tell an empty text from an unset one
	}
	s.peer.CallTool(call, m.GetToolName(), []byte(input))
	return nil
}

// admitTool notes a call, or says why there is none.
func (s *session) admitTool(m *wire.ExecutePackTool) (refusal string) {
	call := m.GetRequestId()
	if call == "" {
		return "request_id is required"
	}
	s.mu.Lock()
	_, used := s.calls[call]
	s.mu.Unlock()
	if used {
		return textDuplicateCall
	}
	if in := m.GetInputJson(); in != "" {
		if err := strictjson.Check([]byte(in), strictjson.Limits{}); err != nil {
			return prefixInvalid + err.Error()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) >= s.opts.MaxToolCalls {
		return FaultText(core.NewFault(core.CodeOverloaded, "%d tools are running for this agent: wait for one to end", len(s.calls)))
	}
	if s.calls == nil {
		s.calls = make(map[string]struct{})
	}
	s.calls[call] = struct{}{}
	return ""
}

// toolResult tells the agent what a tool came to.
func (s *session) toolResult(ctx context.Context, o *tool.Result) error {
	s.mu.Lock()
	delete(s.calls, o.Call)
	s.mu.Unlock()
	m := &wire.ServerMessage{Payload: &wire.ServerMessage_PackToolResult{PackToolResult: &wire.PackToolResult{
		RequestId: o.Call, Result: &wire.PackToolResult_OutputJson{OutputJson: ValidUTF8(string(o.Output))},
	}}}
	if o.Fault != nil {
		m = toolFailure(o.Call, failureText(o))
	}
	err := s.send(ctx, m, nil)
	var big *errTooLarge
	if !errors.As(err, &big) {
		return err
	}
	s.hub.Count(Name + ".refused.too_large")
	f := o.Fault // what was said before it does not fit
	if f == nil {
		f = core.NewFault(core.CodeTooLarge, "the result has %d bytes, a message may have %d: ask for less", big.size, big.limit)
	}
	return s.send(ctx, toolFailure(o.Call, FaultText(f)), nil)
}

// failureText is the error of a tool: the fault and, behind an empty line, the
// JSON that there is beside it. A language model reads on, and a program finds it.
func failureText(o *tool.Result) string {
	switch {
	case o.Pack != "":
		return packFailure(o.Fault)
	case o.Fault.Code == core.CodeUnsupported && strings.HasPrefix(o.Fault.Message, textToolNotFound):
		return textToolNotFound
	case len(o.Output) > 0:
		return FaultText(o.Fault) + besideFault + string(o.Output)
	}
	return FaultText(o.Fault)
}

// besideFault stands between a fault and what was said before it.
const besideFault = "\n\n"

// ToolFailureOf is the inverse of failureText. JSON that tells of no task is the end of
// the fault's own message.
func ToolFailureOf(text string) (*core.Fault, json.RawMessage) {
	if i := strings.LastIndex(text, besideFault); i >= 0 {
		beside := json.RawMessage(text[i+len(besideFault):])
		var about struct {
			TaskID core.TaskID `json:"task_id"`
		}
		if json.Unmarshal(beside, &about) == nil && about.TaskID != "" {
			return faultOf(text[:i]), beside
		}
	}
	return faultOf(text), nil
}

func toolFailure(call, text string) *wire.ServerMessage {
	return &wire.ServerMessage{Payload: &wire.ServerMessage_PackToolResult{PackToolResult: &wire.PackToolResult{
		RequestId: call, Result: &wire.PackToolResult_Error{Error: ValidUTF8(text)},
	}}}
}
