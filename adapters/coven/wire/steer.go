package wire

import (
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// InjectOf returns the message that injects context. Without a known priority it is
// normal.
func InjectOf(in core.Injected) *pb.InjectContext {
	m := &pb.InjectContext{InjectionId: ValidUTF8(in.ID), Content: ValidUTF8(in.Content), Priority: pb.InjectionPriority_INJECTION_PRIORITY_NORMAL}
	if p, ok := priorities[in.Priority]; ok {
		m.Priority = p
	}
	if from := in.Attribution(); from != "" {
		m.Source = proto.String(ValidUTF8(from))
	}
	return m
}

// InjectionOf is the inverse of [InjectOf]. An unknown priority is left unset.
func InjectionOf(m *pb.InjectContext) core.Injected {
	return core.Injected{ID: m.GetInjectionId(), Content: m.GetContent(), Priority: injectionPriorities[m.GetPriority()], Source: m.GetSource()}
}

var (
	priorities = map[core.InjectionPriority]pb.InjectionPriority{
		core.InjectionImmediate: pb.InjectionPriority_INJECTION_PRIORITY_IMMEDIATE,
		core.InjectionNormal:    pb.InjectionPriority_INJECTION_PRIORITY_NORMAL,
		core.InjectionDeferred:  pb.InjectionPriority_INJECTION_PRIORITY_DEFERRED,
	}
	injectionPriorities = inverse(priorities)
)

// AckOf returns the answer to an injection.
func AckOf(a core.InjectionAnswered) *pb.InjectionAck {
	m := &pb.InjectionAck{InjectionId: ValidUTF8(a.ID), Accepted: a.Accepted}
	if a.Reason != "" {
		m.Reason = proto.String(ValidUTF8(a.Reason))
	}
	return m
}

// AnsweredOf is the inverse of [AckOf].
func AnsweredOf(m *pb.InjectionAck) core.InjectionAnswered {
	return core.InjectionAnswered{ID: m.GetInjectionId(), Accepted: m.GetAccepted(), Reason: m.GetReason()}
}

// ApprovalOf returns the message of a decision. Coven has no field for who decided and
// why.
func ApprovalOf(d core.ApprovalDecided) *pb.ToolApprovalResponse {
	return &pb.ToolApprovalResponse{Id: ValidUTF8(d.ID), Approved: d.Approved, ApproveAll: d.All}
}

// DecisionOf is the inverse of [ApprovalOf].
func DecisionOf(m *pb.ToolApprovalResponse) core.ApprovalDecided {
	return core.ApprovalDecided{ID: m.GetId(), Approved: m.GetApproved(), All: m.GetApproveAll()}
}

// CancelOf returns the message that asks an agent to stop a request.
func CancelOf(task core.TaskID, c core.CancelRequested) *pb.CancelRequest {
	m := &pb.CancelRequest{RequestId: ValidUTF8(string(task))}
	if c.Reason != "" {
		m.Reason = proto.String(ValidUTF8(c.Reason))
	}
	return m
}
