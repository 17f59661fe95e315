package core

import "fmt"

// Kind names one kind of [Body]. The zero Kind is unset.
type Kind uint8

// The kinds, in the order in which they tend to happen.
const (
	_ Kind = iota
	KindOpened
	KindAssigned
	KindAccepted
	KindSessionStarted
	KindSessionLost
	KindThinking
	KindText
	KindToolCall
	KindToolState
	KindToolResult
	KindApprovalRequested
	KindApprovalDecided
	KindQuestionAsked
	KindQuestionAnswered
	KindInjected
	KindInjectionAnswered
	KindFile
	KindUsage
	KindRetrying
	KindCancelRequested
	KindForeign
	KindDone
	KindFailed
	KindCancelled
)

var kindNames = [...]string{
	"", "opened", "assigned", "accepted", "session_started", "session_lost", "thinking", "text",
	"tool_call", "tool_state", "tool_result", "approval_requested", "approval_decided", "question_asked",
	"question_answered", "injected", "injection_answered", "file", "usage", "retrying", "cancel_requested", "foreign", "done", "failed", "cancelled",
}

// Kinds returns every kind, in order.
func Kinds() []Kind {
	ks := make([]Kind, 0, len(kindNames)-1)
	for k := KindOpened; int(k) < len(kindNames); k++ {
		ks = append(ks, k)
	}
	return ks
}

// String returns the name that the kind has in JSON and in the documentation.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// ParseKind is the inverse of String.
func ParseKind(name string) (Kind, bool) {
	for k := KindOpened; int(k) < len(kindNames); k++ {
		if kindNames[k] == name {
			return k, true
		}
	}
	return 0, false
}

// Ends reports whether the kind ends a task.
func (k Kind) Ends() bool { return k >= KindDone && int(k) < len(kindNames) }

// Output reports whether the kind is part of an agent's answer: after the first such event a
// task is not given to another agent.
func (k Kind) Output() bool {
	switch k {
	case KindThinking, KindText, KindToolCall, KindToolState, KindToolResult, KindApprovalRequested, KindQuestionAsked, KindFile, KindForeign:
		return true
	}
	return false
}

// ForAgent reports whether the kind is for the agent that works on the task, not from it.
func (k Kind) ForAgent() bool {
	switch k {
	case KindAssigned, KindApprovalDecided, KindInjected, KindCancelRequested:
		return true
	}
	return false
}
