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

// executeTool starts a tool of the hub or of a pack for the agent and does not wait for it:
// the delivery goroutine sends the result. Its error means that the link is closed.
func (s *session) executeTool(ctx context.Context, m *pb.ExecutePackTool) error {
	call := m.GetRequestId()
	if refusal := s.admitTool(m); refusal != "" {
		s.hub.Count(Name + ".refused.tool_call")
		return s.send(ctx, toolFailure(call, refusal), nil)
	}
	input := m.GetInputJson()
	if input == "" {
		input = "{}" // proto3 has one value for empty and unset
	}
	s.agent.InTrace(wire.TraceOf(m))
	s.agent.CallTool(call, m.GetToolName(), []byte(input))
	return nil
}

// admitTool records a call, or returns why it is refused.
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

// sendToolResult sends the result of a call.
func (s *session) sendToolResult(ctx context.Context, r *tool.Result) error {
	s.mu.Lock()
	delete(s.calls, r.Call)
	s.mu.Unlock()
	m := &pb.ServerMessage{Payload: &pb.ServerMessage_PackToolResult{PackToolResult: &pb.PackToolResult{
		RequestId: r.Call, Result: &pb.PackToolResult_OutputJson{OutputJson: wire.ValidUTF8(string(r.Output))},
	}}}
	if r.Fault != nil {
		m = toolFailure(r.Call, wire.ToolFailure(r))
	}
	err := s.send(ctx, m, nil)
	var big *errTooLarge
	if !errors.As(err, &big) {
		return err
	}
	s.hub.Count(Name + ".refused.too_large")
	f := r.Fault // without the output, which does not fit
	if f == nil {
		f = core.NewFault(core.CodeTooLarge, "the result has %d bytes, a message may have %d: ask for less", big.size, big.limit)
	}
	return s.send(ctx, toolFailure(r.Call, wire.FaultText(f)), nil)
}

func toolFailure(call, text string) *pb.ServerMessage {
	return &pb.ServerMessage{Payload: &pb.ServerMessage_PackToolResult{PackToolResult: &pb.PackToolResult{
		RequestId: call, Result: &pb.PackToolResult_Error{Error: wire.ValidUTF8(text)},
	}}}
}
