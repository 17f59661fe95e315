package core

import (
	"encoding/json"
	"time"
)

// Request asks, delegates or notifies.
type Request struct {
	Intent Intent  `json:"intent"`
	To     Address `json:"to"`
	// Thread is the conversation that the request belongs to; "" begins one.
	Thread ThreadID `json:"thread,omitempty"`
	// Branch is the task that the conversation branched from: History begins with its turns up to that task, and they
	// become the first of this conversation. Only the hub says so.
	Branch TaskID `json:"branch,omitempty"`
	// Content is the question or the task as text.
	Content string `json:"content"`
	// Data is structured content: any JSON value, or nothing.
	Data        json.RawMessage `json:"data,omitempty"`
	Attachments []File          `json:"attachments,omitempty"`
	// Handed are the tasks of the last attachments, one each: these are of earlier turns, which another agent had. An
	// agent that cannot take one of these does the task without it.
	Handed []TaskID `json:"-"`
	// History is the conversation so far, for agents that keep none. The hub fills it in,
	// after what the requester sent.
	History []Turn `json:"history,omitempty"`
	// Context is what else the agent should know: a JSON object, or nothing.
	Context json.RawMessage `json:"context,omitempty"`
	// Domain is a dotted hint about the subject.
	Domain   string   `json:"domain,omitempty"`
	Priority Priority `json:"priority,omitempty"`
	// MaxTokens is the maximum length of the answer; zero sets no limit.
	MaxTokens int64 `json:"max_tokens,omitempty"`
	// Options are what the agent is set to for the task; agents without [FeatureOptions] refuse any.
	Options Options `json:"options,omitempty"`
	// Deadline is when the requester stops waiting; zero means the default of its dialect.
	Deadline time.Time `json:"deadline,omitzero"`
	// ReportBack asks for the outcome of what was delegated.
	ReportBack bool `json:"report_back,omitempty"`
	// Cause is the task that the requester was working on. The hub derives it; a peer can
	// only narrow it to one of its own running tasks.
	Cause TaskID `json:"cause,omitempty"`
	// Notice is the content of a request whose intent is to notify.
	Notice *Notice `json:"notice,omitempty"`
	// Foreign is what else the source dialect said.
	Foreign *Foreign `json:"foreign,omitempty"`
}

// DropContent removes what the requester said: the rest stands in the record of a refusal. What the request shares with others
// stays as it is.
func (r *Request) DropContent() {
	r.Content, r.Data, r.Attachments, r.History, r.Context, r.Foreign = "", nil, nil, nil, nil, nil
	if r.Notice != nil {
		notice := *r.Notice
		notice.Data = nil
		r.Notice = &notice
	}
}

// Size estimates what the request costs in memory, in bytes.
func (r Request) Size() int {
	n := 256 + len(r.Content) + len(r.Data) + len(r.Context) + len(r.Domain) + len(r.Thread) + r.Options.size()
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

// Role is the role of a speaker in a conversation. The zero value is unset.
type Role uint8

// The roles of a turn.
const (
	_             Role = iota
	RoleUser           // it asked
	RoleAssistant      // it answered
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
	// Agent is the agent that answered, in a turn of the assistant.
	Agent AgentID `json:"agent,omitempty"`
	// Task is the task that the turn belongs to.
	Task TaskID    `json:"task,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Files are those of the request, or of the answer. One without data is not kept. They are not sent with the turn:
	// who goes on with the conversation gets them as attachments.
	Files []File `json:"-"`
	// From is the principal that asked. It is not sent to peers.
	From string `json:"-"`
	// Earlier says that it was said in the conversation from which this one branched: no agent knows it from this one.
	Earlier bool `json:"-"`
	// Written caches the turn as a dialect writes it; nil caches nothing. It is not sent.
	Written *Written `json:"-"`
}

// Size estimates the memory of the turn in bytes, without Written and the files.
func (t Turn) Size() int { return 96 + len(t.Text) }

// Notice is a message that needs no answer.
type Notice struct {
	// Topic is dotted.
	Topic string `json:"topic"`
	// Data is any JSON value, or nothing.
	Data       json.RawMessage `json:"data,omitempty"`
	Importance Importance      `json:"importance,omitempty"`
}
