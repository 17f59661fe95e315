package editor

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// ToolCall begins a tool call.
func (t *turn) ToolCall(e core.Event, b core.ToolCall) error {
	t.tools[b.ID] = struct{}{}
	more, done := t.verbatim(e)
	if done {
		return t.failure
	}
	return t.tool(core.KindToolCall, wire.UpdateToolCall, wire.ToolCall{
		ToolCallID: b.ID, Title: visible.Line(b.Name), Name: b.Name, Kind: wire.ToolOther, Status: wire.ToolPending, RawInput: asJSON(b.Input),
	}, more)
}

// ToolState changes the status of a tool call.
func (t *turn) ToolState(e core.Event, b core.ToolState) error {
	more, done := t.verbatim(e)
	if done {
		return t.failure
	}
	if err := t.withdrawDecided(b); err != nil {
		return err
	}
	update := wire.ToolCall{ToolCallID: b.ID, Status: statusOf(b.State)}
	detail := b.Detail
	if b.State > core.ToolFailed { // the protocol has one word for denied, timeout and cancelled
		detail = strings.TrimSuffix(b.State.String()+": "+detail, ": ")
	}
	update.Content = contentOf(detail)
	return t.toolUpdate(core.KindToolState, update, more)
}

// ToolResult ends a tool call.
func (t *turn) ToolResult(e core.Event, b core.ToolResult) error {
	more, done := t.verbatim(e)
	if done {
		return t.failure
	}
	update := wire.ToolCall{ToolCallID: b.ID, Status: wire.ToolCompleted, Content: contentOf(b.Output), RawOutput: asJSON(b.Output)}
	if b.IsError {
		update.Status = wire.ToolFailed
	}
	return t.toolUpdate(core.KindToolResult, update, more)
}

// toolUpdate sends tool_call_update, after a tool_call if there was none of that id.
func (t *turn) toolUpdate(k core.Kind, update wire.ToolCall, more json.RawMessage) error {
	if _, known := t.tools[update.ToolCallID]; !known {
		t.tools[update.ToolCallID] = struct{}{}
		update.Title, update.Kind = update.ToolCallID, wire.ToolOther
		return t.tool(k, wire.UpdateToolCall, update, more)
	}
	return t.tool(k, wire.UpdateToolCallUpdate, update, more)
}

func (t *turn) tool(k core.Kind, kind string, call wire.ToolCall, more json.RawMessage) error {
	return t.send(k, wire.Restore(strictjson.Encode(struct {
		SessionUpdate string `json:"sessionUpdate"`
		wire.ToolCall
	}{kind, call}), more))
}

// statusOf returns the status of a tool call in a state.
func statusOf(s core.ToolCondition) string {
	switch s {
	case core.ToolPending, core.ToolAwaitingApproval:
		return wire.ToolPending
	case core.ToolRunning:
		return wire.ToolInProgress
	case core.ToolCompleted:
		return wire.ToolCompleted
	}
	return wire.ToolFailed
}

func contentOf(text string) []wire.ToolContent {
	if text == "" {
		return nil
	}
	block := wire.Text(text)
	return []wire.ToolContent{{Type: wire.ToolContentContent, Content: &block}}
}

// asJSON returns a text that may be JSON as JSON.
func asJSON(text string) json.RawMessage {
	switch {
	case text == "":
		return nil
	case strictjson.Check([]byte(text), strictjson.Limits{Bytes: len(text)}) == nil:
		return json.RawMessage(text)
	}
	return strictjson.AppendString(nil, text)
}
