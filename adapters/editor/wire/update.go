package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Update is the params of session/update. Its parts share the memory of the message.
type Update struct {
	// SessionID is the text of the id: a view of the message where it has no escapes.
	SessionID []byte
	// Kind is a constant for the kinds of the schema, else a text of its own.
	Kind string
	// Whole is the object update.
	Whole strictjson.Value

	content   strictjson.Value // of a chunk
	messageID strictjson.Value
	more      bool // a chunk has members beside the content and the message id
}

// ReadUpdate reads the params of session/update. It decodes neither the text of a chunk nor
// what another kind says: see [Update.Text], [Update.Block] and [Update.ToolCall].
func ReadUpdate(params strictjson.Value) (Update, error) {
	var u Update
	for key, value := range params.Members() {
		switch string(key) {
		case "sessionId":
			u.SessionID = textOf(value)
		case "update":
			u.Whole = value
		}
	}
	if len(u.SessionID) == 0 {
		return u, errors.New("sessionId: missing; send the id of a session")
	}
	if u.Whole.Kind() != strictjson.Object {
		return u, errors.New("update: want an object with the member sessionUpdate")
	}
	for key, value := range u.Whole.Members() {
		switch string(key) {
		case "sessionUpdate":
			u.Kind = kindOf(textOf(value))
		case "content":
			u.content = value
		case "messageId":
			u.messageID = value
		default:
			u.more = true
		}
	}
	if u.Kind == "" {
		return u, errors.New("update.sessionUpdate: want the kind of the update as a string")
	}
	return u, nil
}

// textOf returns the text of a string; nil for anything else. It copies only one with escapes.
func textOf(v strictjson.Value) []byte {
	switch {
	case v.Kind() != strictjson.String:
		return nil
	case v.Escaped():
		text, _ := v.Text()
		return []byte(text)
	}
	raw := v.Raw()
	return raw[1 : len(raw)-1]
}

// kindOf returns the kind of an update without a copy if it is known.
func kindOf(text []byte) string {
	switch string(text) {
	case UpdateAgentMessageChunk:
		return UpdateAgentMessageChunk
	case UpdateAgentThoughtChunk:
		return UpdateAgentThoughtChunk
	case UpdateUserMessageChunk:
		return UpdateUserMessageChunk
	case UpdateToolCall:
		return UpdateToolCall
	case UpdateToolCallUpdate:
		return UpdateToolCallUpdate
	}
	return string(text)
}

// IsChunk reports whether the update is a chunk of a message.
func (u *Update) IsChunk() bool {
	return u.Kind == UpdateAgentMessageChunk || u.Kind == UpdateAgentThoughtChunk || u.Kind == UpdateUserMessageChunk
}

// Text returns the text of a chunk, a piece of that of its message, and whether it is one whose content is text.
func (u *Update) Text() (strictjson.Piece, bool) {
	if !u.IsChunk() {
		return "", false
	}
	var text strictjson.Value
	is := false
	for key, value := range u.content.Members() {
		switch string(key) {
		case "type":
			is = string(value.Raw()) == `"text"`
		case "text":
			text = value
		}
	}
	if !is {
		return "", false
	}
	return text.Piece()
}

// MessageID returns the id of the message that a chunk belongs to, as JSON; nil for none.
func (u *Update) MessageID() json.RawMessage {
	if u.messageID.Absent() {
		return nil
	}
	return u.messageID.Raw()
}

// Plain reports whether a chunk of text says nothing beside its text and perhaps the id of its
// message.
func (u *Update) Plain() bool { return !u.more && u.content.Len() == 2 }

// Block returns the content of a chunk.
func (u *Update) Block() (Block, error) {
	var b Block
	if err := u.content.Decode(&b); err != nil {
		return b, fmt.Errorf("update.content: %w", err)
	}
	if err := b.Check(); err != nil {
		return b, fmt.Errorf("update.content.%w", err)
	}
	return b, nil
}

// Parent returns the id of the call that this one is a part of, where a subagent makes it; "" for none. The
// protocol has no member for it: Claude Code and Qwen Code say it in _meta.
func (t *ToolCall) Parent() string {
	if len(t.Meta) == 0 {
		return ""
	}
	meta := strictjson.ParseValid(t.Meta)
	if id, is := meta.Get("claudeCode", "parentToolUseId").Text(); is {
		return id
	}
	id, _ := meta.Get("parentToolCallId").Text()
	return id
}

func (t *ToolCall) check() error { return need("toolCallId", t.ToolCallID) }

// ToolCall returns the content of tool_call and tool_call_update.
func (u *Update) ToolCall() (ToolCall, error) {
	var t ToolCall
	if err := u.Whole.Decode(&t); err != nil {
		return t, fmt.Errorf("update.%w", err)
	}
	if err := t.check(); err != nil {
		return t, fmt.Errorf("update.%w", err)
	}
	return t, nil
}

// Notice returns the content of a notice.
func (u *Update) Notice() (Notice, error) {
	var n Notice
	if err := u.Whole.Decode(&n); err != nil {
		return n, fmt.Errorf("update.%w", err)
	}
	return n, nil
}

// Compaction returns the content of a compaction_update.
func (u *Update) Compaction() (CompactionUpdate, error) {
	var c CompactionUpdate
	if err := u.Whole.Decode(&c); err != nil {
		return c, fmt.Errorf("update.%w", err)
	}
	return c, nil
}

// Text returns the state of the compaction in a line, such as "compaction of the context: failed: why".
func (c CompactionUpdate) Text() string {
	text := "compaction of the context"
	for _, part := range []string{strings.ReplaceAll(c.Status, "_", " "), c.Error} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// Text returns the notice in a line, such as "warning: title: description".
func (n Notice) Text() string {
	var parts []string
	for _, part := range []string{n.Severity, n.Title, n.Description} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// AppendChunk appends session/update with a chunk of text. The text is escaped once. rest is
// the [Update.Rest] of a chunk that came from an agent, or nil.
func AppendChunk(to []byte, session, kind, text string, rest json.RawMessage) []byte {
	if len(rest) > 0 {
		return AppendUpdate(to, session, overlay(chunk(nil, kind, text), rest))
	}
	return append(chunk(updateHead(to, session), kind, text), '}', '}')
}

// AppendUpdate appends session/update with an update that is JSON already, such as
// [Update.Whole].
func AppendUpdate(to []byte, session string, update json.RawMessage) []byte {
	return append(append(updateHead(to, session), update...), '}', '}')
}

func updateHead(to []byte, session string) []byte {
	to = append(to, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":`...)
	return append(strictjson.AppendString(to, session), `,"update":`...)
}

func chunk(to []byte, kind, text string) []byte {
	to = append(append(append(to, `{"sessionUpdate":"`...), kind...), `","content":{"type":"text","text":`...)
	return append(strictjson.AppendString(to, text), '}', '}')
}
