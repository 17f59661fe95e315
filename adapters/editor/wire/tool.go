package wire

import "encoding/json"

// The kinds of tools.
const (
	ToolRead       = "read"
	ToolEdit       = "edit"
	ToolDelete     = "delete"
	ToolMove       = "move"
	ToolSearch     = "search"
	ToolExecute    = "execute"
	ToolThink      = "think"
	ToolFetch      = "fetch"
	ToolSwitchMode = "switch_mode"
	ToolOther      = "other"
)

// The statuses of tool calls.
const (
	ToolPending    = "pending"
	ToolInProgress = "in_progress"
	ToolCompleted  = "completed"
	ToolFailed     = "failed"
)

// ToolCall is the content of tool_call, and of tool_call_update, which has the id and what has
// changed. A list replaces the one before as a whole.
type ToolCall struct {
	ToolCallID string          `json:"toolCallId"`
	Title      string          `json:"title,omitempty"`
	Name       string          `json:"name,omitempty"`
	Kind       string          `json:"kind,omitempty"`
	Status     string          `json:"status,omitempty"`
	Content    []ToolContent   `json:"content,omitempty"`
	Locations  []Location      `json:"locations,omitempty"`
	RawInput   json.RawMessage `json:"rawInput,omitempty"`
	RawOutput  json.RawMessage `json:"rawOutput,omitempty"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
}

func (t *ToolCall) check() error { return need("toolCallId", t.ToolCallID) }

// Location is a place that a tool works on.
type Location struct {
	Path string `json:"path"`
	// Line counts from 1; zero for none.
	Line int `json:"line,omitempty"`
}

// The types of content of a tool call.
const (
	ToolContentBlock    = "content"
	ToolContentDiff     = "diff"
	ToolContentTerminal = "terminal"
)

// ToolContent is a piece of what a tool call produced. Which members it has depends on its type.
type ToolContent struct {
	Type    string `json:"type"`
	Content *Block `json:"content,omitempty"`
	// Path is absolute. OldText is nil for a new file.
	Path       string          `json:"path,omitempty"`
	OldText    *string         `json:"oldText,omitempty"`
	NewText    *string         `json:"newText,omitempty"`
	TerminalID string          `json:"terminalId,omitempty"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
}
