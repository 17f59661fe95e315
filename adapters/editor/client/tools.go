package client

import (
	"cmp"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// tool is a tool call of the turn, as its updates add up.
type tool struct {
	id    string
	told  bool // reported as a tool call
	ended bool // reported as a result, or as cancelled
	// held are the updates of a call that waits to be reported until its input is known.
	held      []*core.Foreign
	title     string
	name      string
	parent    string // the call that it is a part of
	input     string
	locations []wire.Location
	state     core.ToolCondition
	output    []wire.ToolContent
	raw       json.RawMessage
	terminal  []byte // what a command has printed
}

const (
	// maxTools bounds the tool calls of one turn. Updates of further ones are told as foreign.
	maxTools = 10_000
	// maxHeld bounds the updates of a tool call that wait for its input.
	maxHeld = 16
)

// toolOf returns the tool call of an id, nil if there are too many.
func (t *turn) toolOf(id string) *tool {
	tl := t.tools[id]
	if tl == nil && len(t.tools) < maxTools {
		tl = &tool{id: id, state: core.ToolPending}
		t.tools[id] = tl
	}
	return tl
}

// change is what an update says anew.
type change struct {
	renamed bool
	input   bool   // another one
	printed string // by a command
}

// merge adds what an update says. An input that says nothing replaces none.
func (tl *tool) merge(u wire.ToolCall) (c change) {
	c.renamed = u.Title != "" && tl.title != "" && u.Title != tl.title
	tl.title, tl.name = cmp.Or(u.Title, tl.title), cmp.Or(u.Name, tl.name)
	tl.parent = cmp.Or(u.Parent(), tl.parent)
	if tl.title == "" {
		tl.title = u.Kind
	}
	if input := string(u.RawInput); len(u.RawInput) > 0 && input != tl.input && (tl.input == "" || !isBlank(input)) && input != "null" {
		tl.input, c.input = input, true
	}
	if u.Content != nil {
		tl.output = u.Content
	}
	if u.Locations != nil {
		tl.locations = u.Locations
	}
	if len(u.RawOutput) > 0 && string(u.RawOutput) != "null" {
		tl.raw = u.RawOutput
	}
	c.printed = tl.printed(u)
	return c
}

// label is what people see of the tool.
func (tl *tool) label() string { return cmp.Or(tl.name, tl.title, "tool") }

// toolUpdate reports tool_call and tool_call_update. The events of one update are told with the
// first of them. A call that is announced without its input waits for it: other dialects tell a call
// once.
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
	c := tl.merge(call)
	announced := u.Kind == wire.UpdateToolCall || len(tl.held) > 0
	if pending := call.Status == "" || call.Status == wire.ToolPending; !tl.told && announced && pending && isBlank(tl.input) && len(tl.held) < maxHeld {
		if tl.held = append(tl.held, wire.Verbatim(u.Whole)); len(tl.held) == 1 {
			t.waiting = append(t.waiting, tl)
		}
		return
	}
	t.toolChanged(tl, call, c, wire.Verbatim(u.Whole))
}

// toolChanged reports what an update of a call means, and before it the call.
func (t *turn) toolChanged(tl *tool, call wire.ToolCall, c change, whole *core.Foreign) {
	begins := !tl.told && len(tl.held) == 0 // the update is the first that is told
	var bodies []core.Body
	if begins {
		tl.told = true
		input := tl.known()
		if call.Status == wire.ToolCompleted || call.Status == wire.ToolFailed {
			input = tl.input // its content is the output
		}
		bodies = append(bodies, core.ToolCall{ID: tl.id, Name: tl.label(), Input: input, Parent: tl.parent})
	} else {
		c.input = c.input && tl.told
		t.tell(tl, tl.known())
	}
	bodies = append(bodies, tl.proceed(call)...)
	if len(bodies) == 0 {
		state := core.ToolState{ID: tl.id, State: tl.state}
		switch {
		case c.printed != "":
			state.Detail = c.printed
		case c.input && !tl.ended:
			state.Detail = "its input is now " + tl.input
		case c.renamed:
			state.Detail = tl.title
		}
		bodies = append(bodies, state)
	}
	for i, body := range bodies {
		foreign := wire.Told()
		if i == 0 {
			foreign = whole
		}
		t.report(body, foreign)
	}
}

// tell reports a call with the input that is known by now, unless it was, and what was held of it.
func (t *turn) tell(tl *tool, input string) {
	if tl.told {
		return
	}
	held := tl.held
	tl.told, tl.held = true, nil
	foreign := wire.Told()
	if len(held) > 0 {
		foreign, held = held[0], held[1:]
	}
	t.report(core.ToolCall{ID: tl.id, Name: tl.label(), Input: input, Parent: tl.parent}, foreign)
	for _, more := range held {
		t.report(core.ToolState{ID: tl.id, State: tl.state}, more)
	}
}

// tellWaiting reports the calls that have waited for their input in vain.
func (t *turn) tellWaiting() {
	for _, tl := range t.waiting {
		t.tell(tl, tl.known())
	}
	t.waiting = nil
}

// proceed returns the events of a new status.
func (tl *tool) proceed(u wire.ToolCall) []core.Body {
	if tl.ended {
		return nil // what is added after the end is a state
	}
	switch u.Status {
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
	failed := u.Status == wire.ToolFailed
	tl.ended, tl.state = true, core.ToolCompleted
	if failed {
		tl.state = core.ToolFailed
	}
	bodies := []core.Body{core.ToolResult{ID: tl.id, Output: tl.result(u), IsError: failed}}
	for _, f := range tl.files() {
		if !failed {
			bodies = append(bodies, f)
		}
	}
	tl.output, tl.raw, tl.input, tl.terminal = nil, nil, "", nil
	return bodies
}

// cancelTools reports open tool calls as cancelled, as a client does at once (prompt turn,
// "Cancellation").
func (t *turn) cancelTools() {
	t.tellWaiting()
	for _, tl := range t.tools {
		if tl.told && !tl.ended {
			tl.ended, tl.state = true, core.ToolCancelled
			t.report(core.ToolState{ID: tl.id, State: tl.state}, wire.Told())
		}
	}
}
