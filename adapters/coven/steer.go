package coven

import (
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// Each message that steers a request is one event, and the other way round.

// injectOf is the message that pushes context to an agent. One without a priority
// is normal.
func injectOf(in core.Injected) *wire.InjectContext {
	m := &wire.InjectContext{InjectionId: ValidUTF8(in.ID), Content: ValidUTF8(in.Content), Priority: wire.InjectionPriority_INJECTION_PRIORITY_NORMAL}
	if p, ok := priorities[in.Priority]; ok {
		m.Priority = p
	}
	if in.Source != "" {
		m.Source = proto.String(ValidUTF8(in.Source))
	}
	return m
}

// InjectionOf is the inverse of injectOf. A priority without a name here is unset.
func InjectionOf(m *wire.InjectContext) core.Injected {
	return core.Injected{ID: m.GetInjectionId(), Content: m.GetContent(), Priority: injectionPriorities[m.GetPriority()], Source: m.GetSource()}
}

var (
	priorities = map[core.InjectionPriority]wire.InjectionPriority{
		core.InjectionImmediate: wire.InjectionPriority_INJECTION_PRIORITY_IMMEDIATE,
		core.InjectionNormal:    wire.InjectionPriority_INJECTION_PRIORITY_NORMAL,
		core.InjectionDeferred:  wire.InjectionPriority_INJECTION_PRIORITY_DEFERRED,
	}
	injectionPriorities = inverse(priorities)
)

// AckOf returns the answer to an injection.
func AckOf(a core.InjectionAnswered) *wire.InjectionAck {
	m := &wire.InjectionAck{InjectionId: ValidUTF8(a.ID), Accepted: a.Accepted}
	if a.Reason != "" {
		m.Reason = proto.String(ValidUTF8(a.Reason))
	}
	return m
}

// answeredOf is the inverse of AckOf.
func answeredOf(m *wire.InjectionAck) core.InjectionAnswered {
	return core.InjectionAnswered{ID: m.GetInjectionId(), Accepted: m.GetAccepted(), Reason: m.GetReason()}
}

// approvalOf tells a decision. Who took it and why Coven has no field for.
func approvalOf(d core.ApprovalDecided) *wire.ToolApprovalResponse {
	return &wire.ToolApprovalResponse{Id: ValidUTF8(d.ID), Approved: d.Approved, ApproveAll: d.All}
}

// DecisionOf is the inverse of approvalOf.
func DecisionOf(m *wire.ToolApprovalResponse) core.ApprovalDecided {
	return core.ApprovalDecided{ID: m.GetId(), Approved: m.GetApproved(), All: m.GetApproveAll()}
}

// cancelOf asks the agent to stop a request.
func cancelOf(task core.TaskID, c core.CancelRequested) *wire.CancelRequest {
	m := &wire.CancelRequest{RequestId: ValidUTF8(string(task))}
	if c.Reason != "" {
		m.Reason = proto.String(ValidUTF8(c.Reason))
	}
	return m
}
