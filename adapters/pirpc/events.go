package pirpc

import (
	"cmp"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// maxForeign bounds what is passed on of an event that the hub does not know, in bytes.
const maxForeign = 64 << 10

// handle handles an event. It reports false once the run is over: then the event is not of it.
func (r *run) handle(e wire.Event) bool {
	r.handling.Lock()
	defer r.handling.Unlock()
	select {
	case <-r.over:
		return false
	default:
	}
	r.frames.Begin(r.frames.Take())
	var err error
	switch e := e.(type) {
	case *wire.Update:
		r.message = true
		err = r.speech.update(e)
	case *wire.MessageStart:
		if e.Role == wire.RoleAssistant {
			if r.message = true; !r.coming {
				r.speech.reset()
			}
			r.coming = false
		}
	case *wire.MessageEnd:
		err = r.endMessage(e)
	case *wire.ToolStart:
		err = r.startTool(e)
	case *wire.ToolUpdate:
		err = r.updateTool(e)
	case *wire.ToolEnd:
		err = r.endTool(e)
	case *wire.Dialog:
		if e.WantsReply() {
			r.ask(e)
		} else {
			err = r.foreign("extension_ui_request."+e.Method, e.Raw)
		}
	case *wire.Other:
		if !e.Known {
			r.opts.Count(countUnknown)
		}
		err = r.foreign(e.Type, e.Raw)
	default:
		err = r.advance(e)
	}
	if err != nil {
		r.stop(err)
	}
	return true
}

// beginAnswer says that the reader loop handles an answer to a command of the run.
func (r *run) beginAnswer() {
	r.handling.Lock()
	defer r.handling.Unlock()
	select {
	case <-r.over:
	default:
		r.frames.Begin(r.frames.Take())
	}
}

// endMessage handles the end of a message, whose text is authoritative.
func (r *run) endMessage(e *wire.MessageEnd) error {
	switch e.Role {
	case wire.RoleAssistant:
	case wire.RoleUser, wire.RoleTool:
		return nil // what was asked, and what the end of the tool said
	default:
		return r.foreign("message_end", e.Raw)
	}
	r.message, r.last = false, e.Message
	agrees, err := r.speech.end(e.Message)
	if err == nil && !agrees {
		r.opts.Count(countReplaced)
		err = r.foreign("message_end", e.Raw)
	}
	if e.Usage != (core.Usage{}) { // whatever was said with them, the tokens are spent
		err = cmp.Or(err, r.framed.Report(e.Usage, nil))
	}
	return err
}

func (r *run) startTool(e *wire.ToolStart) error {
	if r.tools[e.ID] != nil {
		r.opts.Count(countStray)
		return nil
	}
	r.tools[e.ID] = &tool{name: e.Name, input: string(e.Args), parent: e.Parent}
	return r.framed.Report(core.ToolCall{ID: e.ID, Name: e.Name, Input: cmp.Or(string(e.Args), "{}")}, nil)
}

func (r *run) updateTool(e *wire.ToolUpdate) error {
	t := r.tools[e.ID]
	if t == nil {
		r.opts.Count(countStray)
		return nil
	}
	if news := t.news(e.Output); news != "" {
		return r.framed.Report(core.ToolState{ID: e.ID, State: core.ToolRunning, Detail: news}, nil)
	}
	return nil
}

// endTool handles the end of a tool. Its start may have been in a line that was lost.
func (r *run) endTool(e *wire.ToolEnd) error {
	if r.tools[e.ID] == nil && !r.gap {
		r.opts.Count(countStray)
		return nil
	}
	delete(r.tools, e.ID)
	var foreign *core.Foreign
	if n := len(e.Details); n > 0 && n <= maxForeign {
		foreign = &core.Foreign{Dialect: Name, JSON: json.RawMessage(`{"details":` + string(e.Details) + `}`)}
	}
	return r.framed.Report(core.ToolResult{ID: e.ID, Output: e.Output, IsError: e.IsError}, foreign)
}

// foreign passes on an event without a neutral meaning.
func (r *run) foreign(name string, raw json.RawMessage) error {
	if len(raw) > maxForeign {
		r.opts.Count(countForeign)
		raw = nil
	}
	return r.framed.Report(core.ForeignFrame{Dialect: Name, Name: name}, &core.Foreign{Dialect: Name, JSON: raw})
}

// report reports what the task does not depend on.
func (r *run) report(b core.Body) {
	if err := r.framed.Report(b, nil); err != nil {
		r.stop(err)
	}
}
