package core

import (
	"encoding/json"
	"time"
)

// Request is what is asked, delegated or told.
type Request struct {
	Intent Intent  `json:"intent"`
	To     Address `json:"to"`
	// Thread is the conversation that the request belongs to; "" begins one.
	Thread ThreadID `json:"thread,omitempty"`
	// Content is the question or the task in words.
	Content string `json:"content"`
	// Data is what is asked or told in a structure: any JSON value, or nothing.
	Data        json.RawMessage `json:"data,omitempty"`
	Attachments []File          `json:"attachments,omitempty"`
	// History is the conversation so far, for agents that keep none. The hub
	// fills it in; what a requester sends stands before that.
	History []Turn `json:"history,omitempty"`
	// Context is what the agent should know beside: a JSON object, or nothing.
	Context json.RawMessage `json:"context,omitempty"`
	// Domain is a dotted hint of what the request is about.
	Domain   string   `json:"domain,omitempty"`
	Priority Priority `json:"priority,omitempty"`
	// MaxTokens is how long the answer should be at most; zero sets no limit.
	MaxTokens int64 `json:"max_tokens,omitempty"`
	// Deadline is when the requester stops waiting; zero takes the default of
	// its dialect.
	Deadline time.Time `json:"deadline,omitzero"`
	// ReportBack says that the outcome of what was delegated is wanted.
	ReportBack bool `json:"report_back,omitempty"`
	// Cause is the task that the requester worked on when it asked. The hub
	// derives it; a peer can only narrow it to one of its own live tasks.
	Cause TaskID `json:"cause,omitempty"`
	// Notice is what is told, of a request whose intent is to notify.
	Notice *Notice `json:"notice,omitempty"`
	// Foreign is what the source dialect said beside that.
	Foreign *Foreign `json:"foreign,omitempty"`
}

// Size estimates what the request costs in memory, in bytes.
func (r Request) Size() int {
	n := 256 + len(r.Content) + len(r.Data) + len(r.Context) + len(r.Domain) + len(r.Thread)
	for _, f := range r.Attachments {
		n += f.size()
	}
	for _, t := range r.History {
		n += t.Size()
	}
	if r.Notice != nil {
		n += len(r.Notice.Topic) + len(r.Notice.Data)
	}
	if r.Foreign != nil {
		n += len(r.Foreign.JSON) + len(r.Foreign.Wire)
	}
	return n
}

// Role says who spoke in a conversation. The zero value is unset.
type Role uint8

// The roles of a turn.
const (
	_             Role = iota
	RoleUser           // who asked
	RoleAssistant      // who answered
)

var roles = names{"", "user", "assistant"}

// String returns the name of the role in JSON.
func (r Role) String() string { return roles.name(uint8(r)) }

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Role) UnmarshalText(b []byte) error { return roles.parse((*uint8)(r), b, "role") }

// Turn is one thing said in a conversation.
type Turn struct {
	Role Role   `json:"role"`
	Text string `json:"text"`
	// Agent is who answered, of an assistant's turn.
	Agent AgentID `json:"agent,omitempty"`
	// Task is the task that the turn belongs to.
	Task TaskID    `json:"task,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// From is the principal who asked. It is not told.
	From string `json:"-"`
	// Written keeps the turn as a dialect writes it; nil keeps nothing. It is not told.
	Written *Written `json:"-"`
}

// Size estimates what the turn costs in memory, in bytes, without what Written keeps.
func (t Turn) Size() int { return 96 + len(t.Text) }

// Notice is something told that no answer is expected to.
type Notice struct {
	// Topic is dotted.
	Topic string `json:"topic"`
	// Data is any JSON value, or nothing.
	Data       json.RawMessage `json:"data,omitempty"`
	Importance Importance      `json:"importance,omitempty"`
}

// Principal is who the hub established a sender to be (promise P7).
type Principal struct {
	// ID is unique among principals.
	ID string `json:"id"`
	// Dialect is what the sender speaks.
	Dialect string `json:"dialect,omitempty"`
	// Authenticated says that it proved who it is; on an open hub nobody does.
	Authenticated bool `json:"authenticated,omitempty"`
	// Operator may read and cancel every task: whoever uses an open hub from its
	// own machine through REST, or was given the right.
	Operator bool `json:"operator,omitempty"`
	// Until is when the proof of who it is runs out; zero is never. Its sessions end
	// then. It is not told.
	Until time.Time `json:"-"`
	// Proof names what it proved that with, so that its sessions can be ended when
	// that is good no longer; it is no secret, and not told.
	Proof string `json:"-"`
}
