package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// outcome is the result of a tool.
type outcome struct {
	// output is JSON, or empty, without the bytes of files.
	output json.RawMessage
	// structured says that the output has data of an agent.
	structured bool
	files      []core.File
	task       core.TaskID // that the files belong to
	fault      *core.Fault
	// original is the result of a tool of an MCP server, as that sent it; nil for none.
	original json.RawMessage
}

// answered is the output of a tool that returns the answer of an agent.
type answered struct {
	TaskID  core.TaskID     `json:"task_id"`
	AgentID core.AgentID    `json:"agent_id,omitempty"`
	State   string          `json:"state,omitempty"`
	Text    *string         `json:"text,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Files   []answeredFile  `json:"files,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// answeredFile names a file, whose bytes are a content of their own.
type answeredFile struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
}

// outcomeOf returns the outcome of a tool. The bytes of the files in the answer of an agent are
// taken out of the output.
func outcomeOf(name string, r *tool.Result) *outcome {
	o := &outcome{output: r.Output, fault: r.Fault}
	if r.Foreign != nil && r.Foreign.Dialect == Name {
		o.original = r.Foreign.JSON
	}
	if name != resultTool || r.Fault != nil {
		return o
	}
	var a answered
	if strictjson.Decode(r.Output, strictjson.Limits{Bytes: len(r.Output)}, &a) != nil { // the hub wrote it
		return o
	}
	o.task, o.structured = a.TaskID, a.Data != nil
	for i, f := range a.Files {
		o.files = append(o.files, core.File(f))
		a.Files[i].Data = nil
	}
	if len(o.files) > 0 {
		o.output = strictjson.Encode(a)
	}
	return o
}

// resultTool is the tool that returns the answer of an agent to an earlier call.
const resultTool = "agent_result"

// outcomeOfTask returns the outcome of the task of agent_ask, which has ended.
func outcomeOfTask(t *task.Task) *outcome {
	a := t.Answer()
	o := &outcome{files: a.Files, task: t.ID(), fault: a.Fault, structured: a.Data != nil}
	out := answered{TaskID: t.ID(), AgentID: a.Agent, Text: &a.Text, Data: a.Data}
	for _, f := range a.Files {
		out.Files = append(out.Files, answeredFile{Name: f.Name, MediaType: f.MediaType})
	}
	if a.Fault != nil {
		if a.Text == "" && len(a.Files) == 0 {
			return o
		}
		out.AgentID, out.State = "", a.End.String()
		out.Error = strictjson.Encode(a.Fault)
	}
	o.output = strictjson.Encode(out) // the hub takes no data that is not JSON
	return o
}

// callResult is the result of tools/call.
type callResult struct {
	head
	Content    []any           `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// resultOf returns an outcome as the client gets it: the fault and the output as texts, then
// the files. Output that is only a string is the text itself.
func (s *Server) resultOf(q *request, o *outcome) callResult {
	r := callResult{head: s.head(q, wire.ResultComplete), Content: []any{}}
	if o.fault != nil {
		s.hub.Count(Name + ".failed." + string(o.fault.Code))
		r.IsError = true
		r.Content = append(r.Content, wire.NewText(o.fault.Error()))
	}
	if len(o.output) > 0 {
		text := string(o.output)
		_ = strictjson.Decode(o.output, strictjson.Limits{Bytes: len(o.output)}, &text) // else it stays JSON
		r.Content = append(r.Content, wire.NewText(text))
		if o.structured {
			r.Structured = o.output
		}
	}
	for i, f := range o.files {
		r.Content = append(r.Content, wire.ContentOf(fmt.Sprintf("dragoman://tasks/%s/files/%d/", o.task, i), f))
	}
	return r
}
