package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

// The extensions.
const (
	// ExtensionProgress declares that a peer understands progress envelopes.
	ExtensionProgress = "progress"
	// ExtensionSubscribe declares that the hub accepts subscribe and unsubscribe.
	ExtensionSubscribe = "subscribe"
)

// The topics of the notices that the hub itself sends and understands.
const (
	// TopicContext is context for a running task: its data is a [Context].
	TopicContext = "dragoman.context"
	// TopicShutdown says that the hub is stopping: its data is {"reason": "..."}.
	TopicShutdown = "dragoman.shutdown"
	// TopicMissed says that notices of a subscription were dropped: its data is
	// {"missed": n}, at most how many.
	TopicMissed = "dragoman.missed"
)

// Query is the payload of a query.
type Query struct {
	// Question is a text, an object or an array.
	Question json.RawMessage `json:"question"`
	Domain   string          `json:"domain,omitempty"`
	// Context is an addition to the draft, which has it only in delegate.
	Context json.RawMessage `json:"context,omitempty"`
	// MaxTokens is the maximum length of the answer; 0 means no limit.
	MaxTokens int64 `json:"max_tokens,omitempty"`
	// DeadlineMS is how long the sender waits after sending; 0 means the default.
	DeadlineMS int64 `json:"deadline_ms,omitempty"`
}

// Response is the payload of a response.
type Response struct {
	// Data is any JSON value; null if there is none.
	Data       json.RawMessage `json:"data"`
	Summary    string          `json:"summary"`
	TokensUsed int64           `json:"tokens_used,omitempty"`
	Truncated  bool            `json:"truncated"`
}

// Delegate is the payload of a delegate.
type Delegate struct {
	Task     string          `json:"task"`
	Context  json.RawMessage `json:"context,omitempty"`
	Priority string          `json:"priority,omitempty"`
	// ReportBack asks for a result; unset means yes.
	ReportBack *bool `json:"report_back,omitempty"`
	DeadlineMS int64 `json:"deadline_ms,omitempty"`
	// Domain and MaxTokens are additions to the draft, which has them only in query.
	Domain    string `json:"domain,omitempty"`
	MaxTokens int64  `json:"max_tokens,omitempty"`
}

// Ack is the payload of an ack.
type Ack struct {
	Accepted    bool  `json:"accepted"`
	EstimatedMS int64 `json:"estimated_ms,omitempty"`
	// Reason is an addition to the draft, whose refusals have none.
	Reason string `json:"reason,omitempty"`
}

// The states of a result.
const (
	StatusCompleted = "completed"
	StatusFailed    = "failed"
	StatusPartial   = "partial"
)

// Result is the payload of a result.
type Result struct {
	Status  string          `json:"status"`
	Outcome string          `json:"outcome"`
	Data    json.RawMessage `json:"data,omitempty"`
	// Error says why the task failed; null if it did not.
	Error *string `json:"error"`
	// TokensUsed is an addition to the draft, which has it only in response.
	TokensUsed int64 `json:"tokens_used,omitempty"`
	// TaskRef is an addition to the draft: the task on one line, so that nobody has to
	// look it up.
	TaskRef string `json:"task_ref,omitempty"`
}

// Partial is the part of an answer before a failure, with the members of a response.
type Partial struct {
	Summary    string          `json:"summary,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	TokensUsed int64           `json:"tokens_used,omitempty"`
}

// Notify is the payload of a notify.
type Notify struct {
	Topic      string          `json:"topic"`
	Data       json.RawMessage `json:"data"`
	Importance string          `json:"importance,omitempty"`
}

// Context is the data of a notify of [TopicContext].
type Context struct {
	// Ref is the id of the query or delegate that the context is for.
	Ref     string `json:"ref"`
	ID      string `json:"id,omitempty"`
	Content string `json:"content"`
	// Priority is immediate, normal or deferred.
	Priority string `json:"priority,omitempty"`
	Source   string `json:"source,omitempty"`
}

// Cancel is the payload of a cancel.
type Cancel struct {
	Reason string `json:"reason,omitempty"`
}

// Pong is the payload of a pong.
type Pong struct {
	// Status is idle, busy or overloaded.
	Status      string `json:"status"`
	UptimeSecs  int64  `json:"uptime_secs"`
	ActiveTasks int64  `json:"active_tasks"`
	AgentName   string `json:"agent_name,omitempty"`
}

// Discover is the payload of a discover. It is empty in the draft; the hub declares its
// extensions in it.
type Discover struct {
	// Domain is an addition: it asks the hub only for the agents of the domain.
	Domain     string   `json:"domain,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
}

// Capabilities is the payload of capabilities.
type Capabilities struct {
	AgentName string   `json:"agent_name,omitempty"`
	Domains   []string `json:"domains"`
	Channels  []string `json:"channels"`
	Tools     []string `json:"tools"`
	// MaxConcurrentTasks unset means one, unless an operator sets more; 0 means that the
	// peer takes no tasks.
	MaxConcurrentTasks *int64 `json:"max_concurrent_tasks,omitempty"`
	Model              string `json:"model,omitempty"`
	// Capabilities and Extensions are additions to the draft: the names that
	// capability:NAME finds, and the extensions of the peer.
	Capabilities []string `json:"capabilities,omitempty"`
	Extensions   []string `json:"extensions,omitempty"`
	// TakesContext is an addition to the draft: false means that the peer cannot use a
	// notify of [TopicContext]. Unset means that it can.
	TakesContext *bool `json:"takes_context,omitempty"`
	// Agents is sent only by the hub: its agents, by id. MoreAgents is how many of them
	// did not fit into the envelope.
	Agents     []Listed `json:"agents,omitempty"`
	MoreAgents int      `json:"more_agents,omitempty"`
}

// Listed is one agent in the hub's capabilities.
type Listed struct {
	ID           core.AgentID `json:"id"`
	Hex          core.AgentID `json:"hex"`
	AgentName    string       `json:"agent_name"`
	Dialect      string       `json:"dialect"`
	Domains      []string     `json:"domains,omitempty"`
	Capabilities []string     `json:"capabilities,omitempty"`
	Channels     []string     `json:"channels,omitempty"`
	Model        string       `json:"model,omitempty"`
	Status       string       `json:"status"`
}

// Topics is the payload of a subscribe and an unsubscribe.
type Topics struct {
	// Topics are dotted; * matches one part, > at the end all that follow.
	Topics []string `json:"topics,omitempty"`
}

// Hello is the payload of a hello.
type Hello struct {
	ProtocolVersions []int64 `json:"protocol_versions"`
	// SelectedVersion is only in the reply.
	SelectedVersion int64    `json:"selected_version,omitempty"`
	AgentName       string   `json:"agent_name,omitempty"`
	Features        []string `json:"features,omitempty"`
}

// Extensions returns the extensions of the hub.
func Extensions() []string { return []string{ExtensionProgress, ExtensionSubscribe, ExtensionTrace} }

// Features returns the features in the hub's hello: the kinds that the successor of the
// draft calls optional, and our extensions.
func Features() []string {
	return append([]string{
		string(KindDelegate), string(KindAck), string(KindResult), string(KindCancel), string(KindDiscover), string(KindCapabilities),
	}, Extensions()...)
}

// Check validates a decoded envelope against the schema of its kind, or for an unknown kind
// against that of all envelopes. The error is an *[Error] that says what to change.
func (e Envelope) Check() error {
	schema := schemas.ACP(string(e.Kind))
	if schema == nil {
		schema = schemas.ACPEnvelope()
	}
	err := schema.Check(e.whole.Of(bytes.TrimSpace(e.Raw)))
	if err == nil {
		return nil
	}
	var v *schemas.Violation
	if errors.As(err, &v) {
		if hint := misspelledKey(e.Content(), strings.TrimPrefix(v.Path, "payload.")); hint != "" {
			return Refusef(CodeInvalidEnvelope, "payload of %s: %s", e.Kind, hint)
		}
	}
	return Refusef(CodeInvalidEnvelope, "%s: %s", e.Kind, err)
}

// misspelledKey returns a hint if the member at a path exists under a key in another case,
// or "".
func misspelledKey(object strictjson.Value, path string) string {
	within, name := "", path
	for {
		step, rest, deeper := strings.Cut(name, ".")
		if !deeper {
			break
		}
		object, within, name = object.Get(step), within+step+".", rest
	}
	for key := range object.Members() {
		if written := string(key); written != name && strings.EqualFold(written, name) {
			return strings.TrimPrefix(strings.TrimSuffix(within, ".")+": "+misspelled(written, name), ": ")
		}
	}
	return ""
}

// misspelled returns the hint for a key in another case.
func misspelled(written, name string) string {
	return fmt.Sprintf("unknown key %q: did you mean %q?", written, name)
}

// Read decodes the payload of an envelope into v, a pointer to the type of its
// kind. Unknown members are ignored. The error is an *[Error] that says what to
// change.
func (e Envelope) Read(v any) error {
	if err := e.Content().Decode(v); err != nil {
		return Refusef(CodeInvalidEnvelope, "payload of %s: %s", e.Kind, err)
	}
	return nil
}

// Content returns the parsed payload of an envelope, or no value. It is what [Decode] read,
// unless the payload was set since.
func (e Envelope) Content() strictjson.Value { return e.payload.Of(e.Payload) }
