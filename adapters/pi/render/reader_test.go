package render_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// content is a block of a message of any type.
type content struct {
	Type, Text, Thinking, ID, Name string
	Arguments                      any
	open                           bool
	raw                            string // the input of a call, from its delta
}

func (c content) body() string { return c.Text + c.Thinking }

type shape struct {
	Role, StopReason, ErrorMessage, ToolCallID string
	Content                                    []content
	IsError                                    bool
	Usage                                      struct{ Input, Output, CacheRead, CacheWrite, TotalTokens int64 }
}

func (s shape) text() string {
	var b strings.Builder
	for _, c := range s.Content {
		b.WriteString(c.body())
	}
	return b.String()
}

// reader is a client that assembles the deltas and compares them with every snapshot.
type reader struct {
	t   *rapid.T
	how render.Snapshots
	account
	tr     pitest.Transcript
	blocks []content // of the current message, from the deltas
	ended  []json.RawMessage
	retry  int // started and not ended
}

func (r *reader) read(frame []byte) {
	var f pitest.Frame
	var e struct {
		Type, ToolCallID, RequestID, Method, Title, ErrorMessage string
		Message, Update                                          json.RawMessage
		Event                                                    struct {
			Type, Delta, Content string
			ContentIndex         int
			Partial              json.RawMessage
			ToolCall             content
		} `json:"assistantMessageEvent"`
		Result, PartialResult struct {
			Content []content
			Details struct{ State core.ToolCondition }
		}
		IsError bool
		Attempt int
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		r.t.Fatalf("frame %s: %v", frame, err)
	}
	if err := json.Unmarshal(f.Event, &e); err != nil {
		r.t.Fatalf("event %s: %v", f.Event, err)
	}
	r.tr.Add(f)
	switch e.Type {
	case "message_start":
		r.blocks = nil
	case "message_update":
		if got, want := e.Message != nil, r.how == render.SnapshotsAll; got != want || e.Event.Partial != nil && !want {
			r.t.Fatalf("%s: got a snapshot %v, want %v", frame, got, want)
		}
		if e.Event.Partial != nil && string(e.Event.Partial) != string(e.Message) {
			r.t.Fatalf("%s: partial and message differ", frame)
		}
		r.update(e.Event.Type, e.Event.ContentIndex, e.Event.Delta, e.Event.Content, e.Event.ToolCall)
		if e.Message != nil {
			r.compare(e.Message, false)
		}
	case "message_end":
		r.end(e.Message)
	case "tool_execution_update":
		r.States = append(r.States, core.ToolState{ID: e.ToolCallID, State: e.PartialResult.Details.State, Detail: shape{Content: e.PartialResult.Content}.text()})
	case "tool_execution_end":
		r.Results = append(r.Results, toolEnd{e.ToolCallID, shape{Content: e.Result.Content}.text(), e.IsError})
	case "extension_ui_request":
		if e.Method == "confirm" {
			var text struct{ Message string }
			_ = json.Unmarshal(f.Event, &text) // confirm has a text
			r.Approvals = append(r.Approvals, approval{e.RequestID, e.Title, text.Message})
		}
	case "auto_retry_start":
		r.Retries = append(r.Retries, retry{e.Attempt, e.ErrorMessage})
		r.retry++
	case "auto_retry_end":
		r.retry--
	case "agent_end":
		var all struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(f.Event, &all); err != nil {
			r.t.Fatalf("agent_end: %v", err)
		}
		if diff := cmp.Diff(r.ended, all.Messages); diff != "" {
			r.t.Fatalf("agent_end has other messages than were sent (-sent +agent_end):\n%s", diff)
		}
	}
}

func (r *reader) update(kind string, i int, delta, text string, call content) {
	kind, phase, _ := strings.Cut(kind, "_")
	if i == len(r.blocks) && (phase == "start" || kind == "toolcall" && phase == "end") {
		r.blocks = append(r.blocks, content{Type: kind, open: true})
	}
	if i >= len(r.blocks) || r.blocks[i].Type != kind || !r.blocks[i].open {
		r.t.Fatalf("%s_%s of block %d: got blocks %+v, want an open one of that type", kind, phase, i, r.blocks)
	}
	b := &r.blocks[i]
	b.open = phase != "end"
	switch kind {
	case "text":
		b.Text += delta
	case "thinking":
		b.Thinking += delta
	case "toolcall":
		b.raw += delta
		b.ID, b.Name, b.Arguments = call.ID, call.Name, call.Arguments
	}
	if phase == "end" && b.body() != text {
		r.t.Fatalf("%s_end of block %d: got %q, want the text of its deltas, %q", kind, i, text, b.body())
	}
}

// compare compares a snapshot with the deltas. Until the message ends, a snapshot may be
// ahead of the deltas of a block (facts, section 5), but never behind.
func (r *reader) compare(message json.RawMessage, ended bool) shape {
	var m shape
	if err := json.Unmarshal(message, &m); err != nil {
		r.t.Fatalf("message %s: %v", message, err)
	}
	if len(m.Content) != len(r.blocks) {
		r.t.Fatalf("got %d blocks in %s, want %d as in the deltas", len(m.Content), message, len(r.blocks))
	}
	for i, b := range r.blocks {
		c := m.Content[i]
		ok := strings.HasPrefix(c.body(), b.body()) && strings.EqualFold(c.Type, b.Type)
		if !b.open {
			ok = ok && c.body() == b.body() && cmp.Equal(c.Arguments, b.Arguments)
		}
		if !ok || ended && b.open {
			r.t.Fatalf("block %d: got %+v in the snapshot, want the deltas: %+v", i, c, b)
		}
	}
	return m
}

func (r *reader) end(message json.RawMessage) {
	r.ended = append(r.ended, message)
	var m shape
	if err := json.Unmarshal(message, &m); err != nil {
		r.t.Fatalf("message %s: %v", message, err)
	}
	switch m.Role {
	case conversation.RoleUser:
		r.Injected = append(r.Injected, m.text())
	case conversation.RoleTool:
		if got := (toolEnd{m.ToolCallID, m.text(), m.IsError}); !slices.Contains(r.Results, got) {
			r.t.Fatalf("got the message %+v, want one of the tools that ended: %+v", got, r.Results)
		}
	case conversation.RoleAssistant:
		m = r.compare(message, true)
		for i, c := range m.Content {
			if c.Type == "toolCall" {
				r.Pieces = append(r.Pieces, piece{Kind: c.Type, ID: c.ID, Name: c.Name, Text: r.blocks[i].raw, Arguments: string(strictjson.Encode(c.Arguments))})
				continue
			}
			r.add(c.Type, c.body())
		}
		u := core.Usage{Input: m.Usage.Input, Output: m.Usage.Output, CacheRead: m.Usage.CacheRead, CacheWrite: m.Usage.CacheWrite}
		if total := u.Input + u.Output + u.CacheRead + u.CacheWrite; m.Usage.TotalTokens != total {
			r.t.Fatalf("totalTokens: got %d, want %d", m.Usage.TotalTokens, total)
		}
		r.Usage = r.Usage.Add(u)
		r.Stop, r.Problem = m.StopReason, m.ErrorMessage
	}
}
