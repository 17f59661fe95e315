package wire

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Dialect is the name of the dialect in cards and events.
const Dialect = "pi-rpc"

// MaxLine bounds one line of a process, in bytes.
const MaxLine = 10 << 20

// maxDepth is more than the depth of what strictjson reads by default: the arguments of a tool
// are within a message within an update.
const maxDepth = 256

// Event is one line of a process: a pointer to one of the types of this file.
type Event any

// Response answers a command. ID is "" in the answer to a line that was no JSON, and up to version
// 0.74 to an unknown command.
type Response struct {
	ID          string
	Command     string
	Success     bool
	Error       string
	Disposition string
	Data        strictjson.Value
}

// State returns what the answer to get_state says.
func (r *Response) State() (State, error) {
	var s State
	err := r.Data.Decode(&s)
	return s, err
}

// State is the state of a process.
type State struct {
	Model *struct {
		ID       string `json:"id"`
		Provider string `json:"provider"`
	} `json:"model"`
	Streaming    bool   `json:"isStreaming"`
	Compacting   bool   `json:"isCompacting"`
	SessionFile  string `json:"sessionFile"`
	SessionID    string `json:"sessionId"`
	MessageCount int    `json:"messageCount"`
	Pending      int    `json:"pendingMessageCount"`
}

// Idle reports whether the process does nothing and will do nothing by itself, as far as the state
// tells: it does not tell that a retry waits for its time.
func (s State) Idle() bool { return !s.Streaming && !s.Compacting && s.Pending == 0 }

// Update is a step of the message that the assistant writes (message_update). Only what differs
// from the step before is read.
type Update struct {
	// Kind is text_delta, thinking_end and so on.
	Kind string
	// Index is that of the block in the content of the message.
	Index int
	// Delta is what is added.
	Delta strictjson.Piece
}

// The kinds of [Update] that the hub uses: message_end has what the others say.
const (
	TextDelta     = "text_delta"
	ThinkingDelta = "thinking_delta"
)

// MessageStart begins a message.
type MessageStart struct{ Message }

// MessageEnd ends a message; Raw is the whole of it.
type MessageEnd struct {
	Message
	Raw json.RawMessage
}

// RunStart begins a run of the model.
type RunStart struct{}

// Turn begins or ends one turn of a run, which means nothing to the hub.
type Turn struct{}

// RunEnd is the end of a run (agent_end), after which pi may begin another by itself.
type RunEnd struct {
	// Settles reports whether the process sends [Settled] when it will not: from version 0.80.4
	// on agent_end has the member willRetry.
	Settles bool
}

// Settled says that pi does nothing more by itself (agent_settled).
type Settled struct{}

// ToolStart begins the execution of a tool.
type ToolStart struct {
	ID, Name string
	// Parent is the id of the tool that called this one; "" if the model did (from version 1 on).
	Parent string
	Args   json.RawMessage
}

// ToolUpdate has the output of the tool so far.
type ToolUpdate struct{ ID, Output string }

// ToolEnd has the whole output of the tool.
type ToolEnd struct {
	ID, Name, Output string
	IsError          bool
	// Details are for programs, such as the diff of an edit; nil for none.
	Details json.RawMessage
}

// Retry is auto_retry_start, or with End auto_retry_end.
type Retry struct {
	End bool
	Raw json.RawMessage
}

// Compaction is compaction_start, or with End compaction_end.
type Compaction struct {
	End, WillRetry bool
	Raw            json.RawMessage
}

// Dialog is a request of an extension to a person (extension_ui_request).
type Dialog struct {
	ID, Method  string
	Title       string
	Message     string
	Placeholder string
	Prefill     string
	Options     []string
	// Timeout is after which time pi decides itself; zero is never.
	Timeout time.Duration
	Raw     json.RawMessage
}

// The methods of a [Dialog] that want an answer.
const (
	MethodSelect  = "select"
	MethodConfirm = "confirm"
	MethodInput   = "input"
	MethodEditor  = "editor"
)

// WantsReply reports whether pi waits for an answer.
func (d *Dialog) WantsReply() bool {
	switch d.Method {
	case MethodSelect, MethodConfirm, MethodInput, MethodEditor:
		return true
	}
	return false
}

// Other is any other line with a type. Known says that pi's documentation has it.
type Other struct {
	Type  string
	Known bool
	Raw   json.RawMessage
}

// Decode reads one line. The error says what is wrong with it; it is no reason to end the
// process. What it returns may share the memory of line.
func Decode(line []byte) (Event, error) {
	v, err := strictjson.Parse(line, strictjson.Limits{Bytes: MaxLine, Depth: maxDepth})
	if err != nil {
		return nil, err
	}
	kind, is := v.Get("type").Text()
	if !is || kind == "" {
		return nil, fmt.Errorf("type: want a string that names the kind of line")
	}
	e, err := decode(kind, v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return e, nil
}

func decode(kind string, v strictjson.Value) (Event, error) {
	switch kind {
	case "message_update":
		return updateOf(v.Get("assistantMessageEvent"))
	case "response":
		return responseOf(v)
	case "message_start":
		m, err := messageOf(v.Get("message"))
		return &MessageStart{m}, err
	case "message_end":
		m, err := messageOf(v.Get("message"))
		return &MessageEnd{m, v.Raw()}, err
	case "agent_start":
		return &RunStart{}, nil
	case "turn_start", "turn_end":
		return &Turn{}, nil
	case "agent_end":
		return &RunEnd{Settles: v.Get("willRetry").Exists()}, nil
	case "agent_settled":
		return &Settled{}, nil
	case "tool_execution_start", "tool_execution_update", "tool_execution_end":
		return toolOf(kind, v)
	case "auto_retry_start", "auto_retry_end":
		return &Retry{End: kind == "auto_retry_end", Raw: v.Raw()}, nil
	case "compaction_start", "compaction_end":
		var c struct {
			WillRetry bool `json:"willRetry"`
		}
		err := v.Decode(&c)
		return &Compaction{End: kind == "compaction_end", WillRetry: c.WillRetry, Raw: v.Raw()}, err
	case "extension_ui_request":
		return dialogOf(v)
	}
	return &Other{Type: kind, Known: others[kind], Raw: v.Raw()}, nil
}

// others are the events that mean nothing to the hub (docs/json.md of pi).
var others = map[string]bool{
	"queue_update": true, "entry_appended": true, "session_info_changed": true, "thinking_level_changed": true, "extension_error": true,
	"summarization_retry_scheduled": true, "summarization_retry_attempt_start": true, "summarization_retry_finished": true,
	"bash_execution_update": true,
}

// updateOf reads an update without reflection: nearly every line is one.
func updateOf(v strictjson.Value) (Event, error) {
	u := &Update{}
	for key, member := range v.Members() {
		if member.Absent() {
			continue
		}
		var is bool
		switch string(key) {
		case "type":
			u.Kind, is = member.Text()
		case "delta":
			u.Delta, is = member.Piece()
		case "contentIndex":
			is = member.Decode(&u.Index) == nil && u.Index >= 0
		default:
			continue
		}
		if !is {
			return nil, fmt.Errorf("assistantMessageEvent.%s: got %s, want %s", key, member.Kind(), wanted(string(key)))
		}
	}
	if u.Kind == "" {
		return nil, fmt.Errorf("assistantMessageEvent.type: want a string")
	}
	return u, nil
}

func wanted(key string) string {
	if key == "contentIndex" {
		return "a whole number"
	}
	return "a string"
}

func responseOf(v strictjson.Value) (Event, error) {
	var r struct {
		ID      string           `json:"id"`
		Command string           `json:"command"`
		Success bool             `json:"success"`
		Error   string           `json:"error"`
		Data    strictjson.Value `json:"data"`
	}
	if err := v.Decode(&r); err != nil {
		return nil, err
	}
	disposition, _ := r.Data.Get("disposition").Text()
	return &Response{ID: r.ID, Command: r.Command, Success: r.Success, Error: r.Error, Disposition: disposition, Data: r.Data}, nil
}

func toolOf(kind string, v strictjson.Value) (Event, error) {
	var t struct {
		ID      string           `json:"toolCallId"`
		Name    string           `json:"toolName"`
		Parent  string           `json:"parentToolCallId"`
		Args    strictjson.Value `json:"args"`
		Partial strictjson.Value `json:"partialResult"`
		Result  strictjson.Value `json:"result"`
		IsError bool             `json:"isError"`
	}
	if err := v.Decode(&t); err != nil {
		return nil, err
	}
	if t.ID == "" {
		return nil, fmt.Errorf("toolCallId: want a string")
	}
	switch kind {
	case "tool_execution_start":
		return &ToolStart{ID: t.ID, Name: t.Name, Parent: t.Parent, Args: t.Args.Raw()}, nil
	case "tool_execution_update":
		return &ToolUpdate{ID: t.ID, Output: contentText(t.Partial.Get("content"))}, nil
	}
	e := &ToolEnd{ID: t.ID, Name: t.Name, Output: contentText(t.Result.Get("content")), IsError: t.IsError}
	if d := t.Result.Get("details"); !d.Absent() && d.Len() > 0 {
		e.Details = d.Raw()
	}
	return e, nil
}

func dialogOf(v strictjson.Value) (Event, error) {
	var d struct {
		ID          string   `json:"id"`
		Method      string   `json:"method"`
		Title       string   `json:"title"`
		Message     string   `json:"message"`
		Placeholder string   `json:"placeholder"`
		Prefill     string   `json:"prefill"`
		Options     []string `json:"options"`
		Timeout     float64  `json:"timeout"`
	}
	if err := v.Decode(&d); err != nil {
		return nil, err
	}
	const day = 24 * 3600 * 1000
	dialog := &Dialog{
		ID: d.ID, Method: d.Method, Title: d.Title, Message: d.Message, Placeholder: d.Placeholder, Prefill: d.Prefill,
		Options: d.Options, Timeout: time.Duration(min(max(0, d.Timeout), day) * float64(time.Millisecond)), Raw: v.Raw(),
	}
	if d.ID == "" && dialog.WantsReply() {
		return nil, fmt.Errorf("id: want a string for the answer")
	}
	return dialog, nil
}
