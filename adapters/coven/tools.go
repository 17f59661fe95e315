package coven

import (
	"context"
	"errors"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/tool"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// executeTool starts a tool of the hub or of a pack for the agent. It never waits for the tool:
// its result comes by the pump, so that the agent's other messages go on being
// read. Its error says that the link is closed.
func (s *session) executeTool(ctx context.Context, m *pb.ExecutePackTool) error {
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
func (s *session) admitTool(m *pb.ExecutePackTool) (refusal string) {
	call := m.GetRequestId()
	if call == "" {
		return "request_id is required"
	}
	s.mu.Lock()
	_, used := s.calls[call]
	s.mu.Unlock()
	if used {
		return wire.TextDuplicateCall
	}
	if in := m.GetInputJson(); in != "" {
		if err := strictjson.Check([]byte(in), strictjson.Limits{}); err != nil {
			return wire.PrefixInvalidInput + err.Error()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) >= s.opts.MaxToolCalls {
		return wire.FaultText(core.NewFault(core.CodeOverloaded, "%d tools are running for this agent: wait for one to end", len(s.calls)))
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
	m := &pb.ServerMessage{Payload: &pb.ServerMessage_PackToolResult{PackToolResult: &pb.PackToolResult{
		RequestId: o.Call, Result: &pb.PackToolResult_OutputJson{OutputJson: wire.ValidUTF8(string(o.Output))},
	}}}
	if o.Fault != nil {
		m = toolFailure(o.Call, wire.ToolFailure(o))
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
	return s.send(ctx, toolFailure(o.Call, wire.FaultText(f)), nil)
}

func toolFailure(call, text string) *pb.ServerMessage {
	return &pb.ServerMessage{Payload: &pb.ServerMessage_PackToolResult{PackToolResult: &pb.PackToolResult{
		RequestId: call, Result: &pb.PackToolResult_Error{Error: wire.ValidUTF8(text)},
	}}}
}
