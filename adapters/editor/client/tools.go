package client

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// tool is a tool call of the turn, as its updates add up.
type tool struct {
	id     string
	told   bool // reported as a tool call
	ended  bool // reported as a result, or as cancelled
	title  string
	name   string
	input  string
	state  core.ToolCondition
	output []wire.ToolContent
	raw    json.RawMessage
}

// maxTools bounds the tool calls of one turn. Updates of further ones are told as foreign.
const maxTools = 10_000

// toolOf returns the tool call of an id, nil if there are too many.
func (t *turn) toolOf(id string) *tool {
	tl := t.tools[id]
	if tl == nil && len(t.tools) < maxTools {
		tl = &tool{id: id, state: core.ToolPending}
		t.tools[id] = tl
	}
	return tl
}

// merge adds what an update says.
func (tl *tool) merge(u wire.ToolCall) (renamed bool) {
	renamed = u.Title != "" && tl.title != "" && u.Title != tl.title
	tl.title, tl.name = cmp.Or(u.Title, tl.title), cmp.Or(u.Name, tl.name)
	if tl.title == "" {
		tl.title = u.Kind
	}
	if len(u.RawInput) > 0 && string(u.RawInput) != "null" {
		tl.input = string(u.RawInput)
	}
	if u.Content != nil {
		tl.output = u.Content
	}
	if len(u.RawOutput) > 0 && string(u.RawOutput) != "null" {
		tl.raw = u.RawOutput
	}
	return renamed
}

// label is what people see of the tool.
func (tl *tool) label() string { return cmp.Or(tl.name, tl.title, "tool") }

// shown is what people decide on: the input, or what the tool would change.
func (tl *tool) shown() string {
	if tl.input != "" {
		return tl.input
	}
	var diffs []byte
	for _, c := range tl.output {
		if c.Type == wire.ToolContentDiff && c.NewText != nil {
			diffs = append(diffs, unified(c)...)
		}
	}
	if diffs == nil {
		return ""
	}
	return string(strictjson.Encode(map[string]string{"diff": string(diffs)}))
}

// toolUpdate reports tool_call and tool_call_update. The events of one update are told with the
// first of them.
func (t *turn) toolUpdate(u *wire.Update) {
	call, err := u.ToolCall()
	if err != nil {
		t.conn.opts.Count("editor.bad_update")
		t.foreign(u)
		return
	}
	tl := t.toolOf(call.ToolCallID)
	if tl == nil {
		t.conn.opts.Count("editor.too_many_tools")
		t.foreign(u)
		return
	}
	renamed := tl.merge(call)
	var bodies []core.Body
	if !tl.told {
		tl.told = true
		bodies = append(bodies, core.ToolCall{ID: tl.id, Name: tl.label(), Input: tl.input})
	}
	bodies = append(bodies, tl.proceed(call.Status)...)
	if len(bodies) == 0 {
		state := core.ToolState{ID: tl.id, State: tl.state}
		if renamed {
			state.Detail = tl.title
		}
		bodies = append(bodies, state)
	}
	for i, body := range bodies {
		foreign := wire.Told()
		if i == 0 {
			foreign = wire.Verbatim(u.Whole)
		}
		t.report(body, foreign)
	}
}

// proceed returns the events of a new status.
func (tl *tool) proceed(status string) []core.Body {
	if tl.ended {
		return nil // what is added after the end is a state
	}
	switch status {
	case wire.ToolInProgress:
		if tl.state == core.ToolRunning {
			return nil
		}
		tl.state = core.ToolRunning
		return []core.Body{core.ToolState{ID: tl.id, State: tl.state}}
	case wire.ToolCompleted, wire.ToolFailed:
	default:
		return nil
	}
	failed := status == wire.ToolFailed
	tl.ended, tl.state = true, core.ToolCompleted
	if failed {
		tl.state = core.ToolFailed
	}
	bodies := []core.Body{core.ToolResult{ID: tl.id, Output: tl.result(), IsError: failed}}
	for _, f := range tl.files() {
		if !failed {
			bodies = append(bodies, f)
		}
	}
	tl.output, tl.raw, tl.input = nil, nil, ""
	return bodies
}

// result returns the output as text: the content if it has any, else the raw output.
func (tl *tool) result() string {
	var parts []string
	for _, c := range tl.output {
		switch {
		case c.Type == wire.ToolContentDiff:
			parts = append(parts, "Changed "+c.Path)
		case c.Content == nil:
		case c.Content.Type == wire.BlockText:
			parts = append(parts, c.Content.Text)
		case c.Content.Type == wire.BlockLink:
			parts = append(parts, c.Content.URI)
		case c.Content.Type == wire.BlockResource && c.Content.Resource != nil && c.Content.Resource.Text != nil:
			parts = append(parts, *c.Content.Resource.Text)
		}
	}
	if len(parts) > 0 || len(tl.raw) == 0 {
		return strings.Join(parts, "\n")
	}
	if text, ok := strictjson.ParseValid(tl.raw).Text(); ok {
		return text
	}
	return string(tl.raw)
}

// files returns the diffs, images and other data among the content. A diff is a file of its own
// kind: what the agent calls the new text may be a part of the file.
func (tl *tool) files() (files []core.Body) {
	for _, c := range tl.output {
		switch {
		case c.Type == wire.ToolContentDiff && c.NewText != nil:
			files = append(files, core.File{Name: path.Base(strings.ReplaceAll(c.Path, `\`, "/")) + ".diff", MediaType: "text/x-diff", Data: unified(c)})
		case c.Content != nil:
			text := c.Content.Type == wire.BlockResource && c.Content.Resource != nil && c.Content.Resource.Text != nil
			if f, ok := fileOf(*c.Content); ok && !text {
				files = append(files, f)
			}
		}
	}
	return files
}

// cancelTools reports open tool calls as cancelled, as a client does at once (prompt turn,
// "Cancellation").
func (t *turn) cancelTools() {
	for _, tl := range t.tools {
		if tl.told && !tl.ended {
			tl.ended, tl.state = true, core.ToolCancelled
			t.report(core.ToolState{ID: tl.id, State: tl.state}, wire.Told())
		}
	}
}
