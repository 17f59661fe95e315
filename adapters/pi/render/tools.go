package render

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// toolCall is a call without a result.
type toolCall struct {
	id, name string
	args     json.RawMessage
	started  bool
	state    core.ToolCondition
	detail   string
}

// ToolCall adds the call to the draft. Further calls go into the same message.
func (v *View) ToolCall(e core.Event, b core.ToolCall) error {
	d := v.beginDraft(e.At)
	v.endBlocks()
	c := &toolCall{id: b.ID, name: b.Name, args: conversation.ToolArguments(b.Input)}
	v.calls = append(v.calls, c)

	i := len(d.blocks)
	body := callBlock(b.ID, b.Name, c.args)
	d.blocks = append(d.blocks, block{kind: blockCall, body: callBlock(b.ID, b.Name, json.RawMessage("{}"))})
	d.calls++
	if d.affordsBlock() {
		v.update("toolcall_start", i, 0, nil)
		d.blocks[i].body = body
		v.update("toolcall_delta", i, len(b.Input), func(dst []byte) []byte {
			return strictjson.AppendString(append(dst, `,"delta":`...), b.Input)
		})
	}
	d.blocks[i].body = body
	d.size += len(body)
	d.rawBytes += len(b.Name) + len(c.args)
	v.update("toolcall_end", i, len(body), func(dst []byte) []byte {
		return append(append(dst, `,"toolCall":`...), body...)
	})
	return nil
}

// callBlock returns the encoded block of a call.
func callBlock(id, name string, args json.RawMessage) []byte {
	b := strictjson.AppendString([]byte(`{"type":"toolCall","id":`), id)
	b = strictjson.AppendString(append(b, `,"name":`...), name)
	return append(append(append(b, `,"arguments":`...), args...), '}')
}

// start announces the start of a call, once.
func (v *View) start(c *toolCall) {
	if !c.started {
		c.started = true
		v.tool("start", c, 0, nil)
	}
}

// tool adds a tool_execution event (see appendTool); rest appends about size bytes.
func (v *View) tool(phase string, c *toolCall, size int, rest func([]byte) []byte) {
	v.event(len(c.id)+len(c.name)+len(c.args)+size+toolSize, func(b []byte) []byte { return appendTool(b, phase, c, rest) })
}

// call returns the call with the id. If the agent never announced it, call starts it.
func (v *View) call(id string) *toolCall {
	for _, c := range v.calls {
		if c.id == id {
			return c
		}
	}
	c := &toolCall{id: id, name: "tool", args: json.RawMessage("{}")}
	v.calls = append(v.calls, c)
	v.start(c)
	return c
}

// ToolState reports the progress of a call. Pending is ignored: the call itself implies it.
func (v *View) ToolState(_ core.Event, b core.ToolState) error {
	if b.State == core.ToolPending {
		return nil
	}
	v.endCalls()
	v.Flush()
	c := v.call(b.ID)
	c.state, c.detail = b.State, b.Detail
	v.tool("update", c, len(b.Detail)+96, func(dst []byte) []byte {
		dst = conversation.AppendContent(append(dst, `,"partialResult":{"content":`...), b.Detail)
		dst = append(append(dst, `,"details":{"state":"`...), b.State.String()...)
		return append(dst, '"', '}', '}')
	})
	return nil
}

// ToolResult ends a call, and the turn with the last of its calls.
func (v *View) ToolResult(e core.Event, b core.ToolResult) error {
	v.endCalls()
	v.Flush()
	v.result(v.call(b.ID), b.Output, b.IsError, e.At)
	if len(v.calls) == 0 && v.draft == nil && v.turn.reply != nil {
		v.endTurn()
	}
	return nil
}

func (v *View) result(c *toolCall, output string, isError bool, at time.Time) {
	for i, o := range v.calls {
		if o == c {
			v.calls = append(v.calls[:i:i], v.calls[i+1:]...)
			break
		}
	}
	v.tool("end", c, len(output)+96, func(dst []byte) []byte {
		dst = conversation.AppendContent(append(dst, `,"result":{"content":`...), output)
		return strconv.AppendBool(append(dst, `},"isError":`...), isError)
	})
	if v.draft == nil {
		v.beginTurn()
	}
	v.add(conversation.ToolMessage(c.id, c.name, output, isError, at.UnixMilli()))
}

// resolve ends the calls that have no result. ended is the error of calls whose last state
// is not final; if it is "", they did not fail.
func (v *View) resolve(ended string, at time.Time) {
	for len(v.calls) > 0 {
		c := v.calls[0]
		text, isError := "no result was reported", false
		switch c.state {
		case core.ToolFailed, core.ToolDenied, core.ToolTimeout, core.ToolCancelled:
			text, isError = c.state.String(), true
		case core.ToolCompleted:
			text = "completed"
		default:
			if ended != "" {
				text, isError = ended, true
			}
		}
		if c.detail != "" {
			text += ": " + c.detail
		}
		v.result(c, text, isError, at)
	}
}
