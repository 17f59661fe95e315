package core

import (
	"encoding/json"
	"time"
)

// Event is one immutable fact in the life of a task.
type Event struct {
	// Seq is the sequence number in the task, from 1, without gaps (promise P2).
	Seq uint64
	// Merged describes an event that consists of several events of text; nil for an event
	// of its own.
	Merged *Merged
	// Epoch is 1, and one more each time that a hub found the task unfinished after a
	// restart.
	Epoch uint32
	// At is when the hub accepted the event.
	At time.Time
	// Body is what happened.
	Body Body
	// Foreign is what else the source dialect said, verbatim; nil for nothing.
	Foreign *Foreign
}

// End returns the last sequence number of the event.
func (e Event) End() uint64 {
	if e.Merged != nil {
		return e.Seq + uint64(len(e.Merged.Cuts))
	}
	return e.Seq
}

// Cursor returns the position after the event.
func (e Event) Cursor() Cursor { return Cursor{Epoch: e.Epoch, Seq: e.End()} }

// Deliver hands the event to the method of s that its kind names.
func (e Event) Deliver(s Sink) error { return e.Body.deliver(e, s) }

// DeliverToAgent hands the event to the method of s that its kind names. It ignores kinds
// that are not for agents.
func (e Event) DeliverToAgent(s AgentSink) error {
	if b, ok := e.Body.(agentBody); ok {
		return b.deliverToAgent(e, s)
	}
	return nil
}

// Size estimates what the event costs in memory, in bytes.
func (e Event) Size() int {
	const header = 80
	n := header + e.Body.size()
	if e.Merged != nil {
		n += 8 * len(e.Merged.Cuts)
	}
	if e.Foreign != nil {
		n += len(e.Foreign.Dialect) + len(e.Foreign.JSON) + len(e.Foreign.Wire)
	}
	return n
}

// Foreign is what a dialect said that has no neutral meaning, verbatim, so that a peer of
// the same dialect gets it unchanged (promise P11).
type Foreign struct {
	// Dialect is the name of the dialect that it came from.
	Dialect string `json:"dialect"`
	// JSON is the original frame, or the fields of it, of a JSON dialect.
	JSON json.RawMessage `json:"json,omitempty"`
	// Wire is the original bytes of a binary dialect.
	Wire []byte `json:"wire,omitempty"`
}

// Body is what an event says. The set of kinds is closed: only the types of this
// package implement it.
type Body interface {
	// Kind returns which kind it is.
	Kind() Kind
	deliver(e Event, s Sink) error
	size() int
}

// agentBody is a Body for the agent that works on the task: of a kind for which
// [Kind.ForAgent] holds, or that ends a task.
type agentBody interface {
	Body
	deliverToAgent(e Event, s AgentSink) error
}

// AgentSink takes the events for the agent that works on a task, one method per kind. Every
// dialect that has agents has one.
type AgentSink interface {
	Assigned(Event, Assigned) error
	ApprovalDecided(Event, ApprovalDecided) error
	Injected(Event, Injected) error
	CancelRequested(Event, CancelRequested) error
	Done(Event, Done) error
	Failed(Event, Failed) error
	Cancelled(Event, Cancelled) error
}

// Sink takes the events of a task, one method per kind. Every dialect that has
// requesters has one.
type Sink interface {
	AgentSink
	Opened(Event, Opened) error
	Accepted(Event, Accepted) error
	SessionStarted(Event, SessionStarted) error
	SessionLost(Event, SessionLost) error
	Thinking(Event, Thinking) error
	Text(Event, Text) error
	ToolCall(Event, ToolCall) error
	ToolState(Event, ToolState) error
	ToolResult(Event, ToolResult) error
	ApprovalRequested(Event, ApprovalRequested) error
	QuestionAsked(Event, QuestionAsked) error
	QuestionAnswered(Event, QuestionAnswered) error
	InjectionAnswered(Event, InjectionAnswered) error
	File(Event, File) error
	Usage(Event, Usage) error
	Retrying(Event, Retrying) error
	ForeignFrame(Event, ForeignFrame) error
}
