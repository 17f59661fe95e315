package core

import (
	"fmt"
	"strings"
)

// ToolCondition is the state of a tool call. The zero value is unset.
type ToolCondition uint8

// The conditions of a tool call.
const (
	_ ToolCondition = iota
	ToolPending
	ToolAwaitingApproval
	ToolRunning
	ToolCompleted
	ToolFailed
	ToolDenied
	ToolTimeout
	ToolCancelled
)

var toolConditions = names{"", "pending", "awaiting_approval", "running", "completed", "failed", "denied", "timeout", "cancelled"}

// String returns the name of the condition in JSON.
func (c ToolCondition) String() string { return toolConditions.name(uint8(c)) }

// MarshalText implements encoding.TextMarshaler.
func (c ToolCondition) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *ToolCondition) UnmarshalText(b []byte) error {
	return toolConditions.parse((*uint8)(c), b, "tool state")
}

// InjectionPriority says when an agent should use injected context. The zero value is unset
// and means normal.
type InjectionPriority uint8

// The priorities of an injection (Fold protocol enhancements, section 3).
const (
	_                  InjectionPriority = iota
	InjectionImmediate                   // into the current answer
	InjectionNormal                      // at the next natural point
	InjectionDeferred                    // after the current work
)

var injectionPriorities = names{"", "immediate", "normal", "deferred"}

// String returns the name of the priority in JSON.
func (p InjectionPriority) String() string { return injectionPriorities.name(uint8(p)) }

// MarshalText implements encoding.TextMarshaler.
func (p InjectionPriority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *InjectionPriority) UnmarshalText(b []byte) error {
	return injectionPriorities.parse((*uint8)(p), b, "injection priority")
}

// Intent says what a requester wants. The zero value is unset and means ask.
type Intent uint8

// The intents.
const (
	_              Intent = iota
	IntentAsk             // an answer is wanted
	IntentDelegate        // work is to be done
	IntentNotify          // a notice; no answer is expected
)

var intents = names{"", "ask", "delegate", "notify"}

// String returns the name of the intent in JSON.
func (i Intent) String() string { return intents.name(uint8(i)) }

// MarshalText implements encoding.TextMarshaler.
func (i Intent) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *Intent) UnmarshalText(b []byte) error { return intents.parse((*uint8)(i), b, "intent") }

// Priority orders the queue of an agent. The zero value is unset and means normal.
type Priority uint8

// The priorities of a request.
const (
	_              Priority = iota
	PriorityLow             // after everything else
	PriorityNormal          // in turn
	PriorityUrgent          // before everything else
)

var priorities = names{"", "low", "normal", "urgent"}

// String returns the name of the priority in JSON.
func (p Priority) String() string { return priorities.name(uint8(p)) }

// MarshalText implements encoding.TextMarshaler.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Priority) UnmarshalText(b []byte) error { return priorities.parse((*uint8)(p), b, "priority") }

// Importance is a hint of the sender of a notice. The zero value is unset and
// means low.
type Importance uint8

// The importances of a notice.
const (
	_ Importance = iota
	ImportanceLow
	ImportanceMedium
	ImportanceHigh
)

var importances = names{"", "low", "medium", "high"}

// String returns the name of the importance in JSON.
func (i Importance) String() string { return importances.name(uint8(i)) }

// MarshalText implements encoding.TextMarshaler.
func (i Importance) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *Importance) UnmarshalText(b []byte) error {
	return importances.parse((*uint8)(i), b, "importance")
}

// names are the texts of an enumeration that starts at one.
type names []string

func (n names) name(v uint8) string {
	if int(v) >= len(n) {
		return fmt.Sprintf("(%d)", v)
	}
	return n[v]
}

func (n names) parse(v *uint8, b []byte, what string) error {
	for i, name := range n {
		if name == string(b) {
			*v = uint8(i)
			return nil
		}
	}
	return NewFault(CodeInvalid, "unknown %s %q: send one of %s", what, b, strings.Join(n[1:], ", "))
}
