package wire

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Progress is the payload of task_progress: one item in the stream of a task.
type Progress struct {
	TaskRef
	// Seq numbers the progress of a task, from 1, without gaps.
	Seq Count `json:"seq,omitempty"`
	Item

	Unknown json.RawMessage `json:"-"` // an object of the members that the hub does not know
	// TextPiece and ThinkingPiece are Text and Thinking, as pieces of what the agent says.
	TextPiece, ThinkingPiece strictjson.Piece `json:"-"`
}

// readPayload keeps the unknown members.
func (p *Progress) readPayload(payload strictjson.Value) error {
	err := payload.Decode(p)
	if err == nil {
		p.Unknown = progressShape.Strip(payload)
		p.TextPiece, _ = payload.Get("text").Piece()
		p.ThinkingPiece, _ = payload.Get("thinking").Piece()
	}
	return err
}

// Item is a part of the work on a task before its end. The hub sets one member; several
// are read in this order.
type Item struct {
	Text              *string       `json:"text,omitempty"`
	Thinking          *string       `json:"thinking,omitempty"`
	ToolCall          *toolCall     `json:"toolCall,omitempty"`
	ToolState         *toolState    `json:"toolState,omitempty"`
	ToolResult        *toolResult   `json:"toolResult,omitempty"`
	Usage             *usage        `json:"usage,omitempty"`
	File              *file         `json:"file,omitempty"`
	Session           *agentSession `json:"session,omitempty"`
	ApprovalRequested *toolCall     `json:"approvalRequested,omitempty"`
	ApprovalDecided   *approval     `json:"approvalDecided,omitempty"`
	QuestionAsked     *question     `json:"questionAsked,omitempty"`
	QuestionAnswered  *answer       `json:"questionAnswered,omitempty"`
	InjectionAnswered *injection    `json:"injectionAnswered,omitempty"`
	Retrying          *retrying     `json:"retrying,omitempty"`
	Omitted           *Omitted      `json:"omitted,omitempty"`
	ForeignFrame      *foreignFrame `json:"foreign,omitempty"`
}

type toolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Input is the input if it is JSON, else InputText is.
	Input     json.RawMessage `json:"input,omitempty"`
	InputText string          `json:"inputText,omitempty"`
}

type toolState struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

type toolResult struct {
	ID      string `json:"id"`
	Output  string `json:"output"`
	IsError bool   `json:"isError,omitempty"`
}

type usage struct {
	Input      Count `json:"input"`
	Output     Count `json:"output"`
	CacheRead  Count `json:"cacheRead,omitempty"`
	CacheWrite Count `json:"cacheWrite,omitempty"`
	Thinking   Count `json:"thinking,omitempty"`
}

type file struct {
	Name      string `json:"name"`
	MediaType string `json:"mediaType,omitempty"`
	Data      []byte `json:"data"`
}

// agentSession reports that the agent's own session began, or why it was lost.
type agentSession struct {
	ID   string `json:"id,omitempty"`
	Lost string `json:"lost,omitempty"`
}

type approval struct {
	ID       string `json:"id"`
	Approved bool   `json:"approved"`
	All      bool   `json:"all,omitempty"`
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Option   string `json:"option,omitempty"`
	// InputSHA256 is that of the input which was decided on.
	InputSHA256 string `json:"inputSha256,omitempty"`
}

// question is what people are asked. Until is in RFC 3339.
type question struct {
	ID      string        `json:"id"`
	Text    string        `json:"question"`
	Header  string        `json:"header,omitempty"`
	Options []core.Option `json:"options,omitempty"`
	Several bool          `json:"multiSelect,omitempty"`
	Until   time.Time     `json:"until"`
}

// answer is how a question ended.
type answer struct {
	ID       string          `json:"id"`
	Answered bool            `json:"answered"`
	Selected []string        `json:"selected,omitempty"`
	Text     string          `json:"customText,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	By       string          `json:"by,omitempty"`
}

type injection struct {
	ID       string `json:"id"`
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason,omitempty"`
}

type retrying struct {
	Attempt int          `json:"attempt"`
	Agent   string       `json:"agent"`
	Error   *ErrorDetail `json:"error,omitempty"`
}

// Omitted replaces something that does not fit into a message.
type Omitted struct {
	Kind   string `json:"kind"`
	Bytes  int    `json:"bytes,omitempty"`
	Reason string `json:"reason"`
}

// foreignFrame replaces a frame of another dialect that Parallax has no message for.
type foreignFrame struct {
	Dialect string `json:"dialect"`
	Name    string `json:"name"`
}

// Bodies returns the events of the item. Omitted is no event.
func (i Item) Bodies() ([]core.Body, error) {
	var bs []core.Body
	if i.Text != nil {
		bs = append(bs, core.Text{Text: *i.Text})
	}
	if i.Thinking != nil {
		bs = append(bs, core.Thinking{Text: *i.Thinking})
	}
	if c := i.ToolCall; c != nil {
		bs = append(bs, core.ToolCall{ID: c.ID, Name: c.Name, Input: c.input()})
	}
	if s := i.ToolState; s != nil {
		var c core.ToolCondition
		if err := c.UnmarshalText([]byte(s.State)); err != nil {
			return nil, err
		}
		bs = append(bs, core.ToolState{ID: s.ID, State: c, Detail: s.Detail})
	}
	if i.ToolResult != nil {
		bs = append(bs, core.ToolResult(*i.ToolResult))
	}
	if u := i.Usage; u != nil {
		bs = append(bs, core.Usage{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite), Thinking: int64(u.Thinking)})
	}
	if i.File != nil {
		bs = append(bs, core.File(*i.File))
	}
	switch s := i.Session; {
	case s == nil:
	case s.Lost != "":
		bs = append(bs, core.SessionLost{Reason: s.Lost})
	default:
		bs = append(bs, core.SessionStarted{Session: s.ID})
	}
	if c := i.ApprovalRequested; c != nil {
		bs = append(bs, core.ApprovalRequested{ID: c.ID, Name: c.Name, Input: c.input()})
	}
	if i.ApprovalDecided != nil {
		bs = append(bs, core.ApprovalDecided(*i.ApprovalDecided))
	}
	if i.QuestionAsked != nil {
		bs = append(bs, core.QuestionAsked(*i.QuestionAsked))
	}
	if i.QuestionAnswered != nil {
		bs = append(bs, core.QuestionAnswered(*i.QuestionAnswered))
	}
	if i.InjectionAnswered != nil {
		bs = append(bs, core.InjectionAnswered(*i.InjectionAnswered))
	}
	if r := i.Retrying; r != nil {
		b := core.Retrying{Attempt: r.Attempt, Agent: core.AgentID(r.Agent)}
		if r.Error != nil {
			b.Fault = TaskError{Error: *r.Error}.Fault()
		}
		bs = append(bs, b)
	}
	if f := i.ForeignFrame; f != nil && f.Dialect != Dialect { // else it is no frame of another dialect
		bs = append(bs, core.ForeignFrame{Dialect: f.Dialect, Name: f.Name})
	}
	return bs, nil
}

// ItemOf returns the item for an event, and reports whether there is one.
func ItemOf(body core.Body) (Item, bool) {
	switch b := body.(type) {
	case core.Text:
		return Item{Text: &b.Text}, true
	case core.Thinking:
		return Item{Thinking: &b.Text}, true
	case core.ToolCall:
		return Item{ToolCall: callOf(b.ID, b.Name, b.Input)}, true
	case core.ToolState:
		return Item{ToolState: &toolState{b.ID, b.State.String(), b.Detail}}, true
	case core.ToolResult:
		r := toolResult(b)
		return Item{ToolResult: &r}, true
	case core.Usage:
		return Item{Usage: &usage{Count(b.Input), Count(b.Output), Count(b.CacheRead), Count(b.CacheWrite), Count(b.Thinking)}}, true
	case core.File:
		f := file(b)
		return Item{File: &f}, true
	case core.SessionStarted:
		return Item{Session: &agentSession{ID: b.Session}}, true
	case core.SessionLost:
		return Item{Session: &agentSession{Lost: b.Reason}}, true
	case core.Retrying:
		return Item{Retrying: &retrying{b.Attempt, string(b.Agent), errorOf(b.Fault, nil)}}, true
	case core.ForeignFrame:
		return Item{ForeignFrame: &foreignFrame{b.Dialect, b.Name}}, true
	}
	return itemOfPeople(body)
}

// itemOfPeople is ItemOf for what people are asked and told.
func itemOfPeople(body core.Body) (Item, bool) {
	switch b := body.(type) {
	case core.ApprovalRequested:
		return Item{ApprovalRequested: callOf(b.ID, b.Name, b.Input)}, true
	case core.ApprovalDecided:
		a := approval(b)
		return Item{ApprovalDecided: &a}, true
	case core.QuestionAsked:
		q := question(b)
		return Item{QuestionAsked: &q}, true
	case core.QuestionAnswered:
		a := answer(b)
		return Item{QuestionAnswered: &a}, true
	case core.InjectionAnswered:
		a := injection(b)
		return Item{InjectionAnswered: &a}, true
	}
	return Item{}, false
}

// ItemOfEvent returns the item for an event and the unknown members that a peer of the
// same dialect sent with it. The item is empty for a frame of unknown members alone. The
// members of a failed attempt's task_error belong into retrying.
func ItemOfEvent(e core.Event) (Item, *core.Foreign) {
	switch b := e.Body.(type) {
	case core.ForeignFrame:
		if b.Dialect == Dialect {
			return Item{}, e.Foreign
		}
	case core.Retrying:
		item := Item{Retrying: &retrying{b.Attempt, string(b.Agent), errorOf(b.Fault, e.Foreign)}}
		unknown := MembersOf(e.Foreign)
		if unknown["payload"] == nil {
			return item, e.Foreign
		}
		unknown["payload"] = object("retrying", unknown["payload"])
		raw, err := strictjson.Marshal(unknown)
		if err != nil {
			return item, nil
		}
		return item, &core.Foreign{Dialect: Dialect, JSON: raw}
	}
	i, _ := ItemOf(e.Body)
	return i, e.Foreign
}

// callOf returns a tool call, with its input as JSON if a strict reader accepts it.
func callOf(id, name, input string) *toolCall {
	c := &toolCall{ID: id, Name: name}
	const room = 8 // levels of nesting around the input
	switch {
	case input == "":
	case strictjson.Check([]byte(input), strictjson.Limits{Depth: Limits.Depth - room}) == nil && strings.TrimSpace(input) != "null":
		c.Input = json.RawMessage(input)
	default:
		c.InputText = input
	}
	return c
}

func (c *toolCall) input() string {
	if c.InputText != "" {
		return c.InputText
	}
	return string(c.Input)
}

// AgentMaySend reports whether an agent may send the kind as progress. It may not ask
// for approval, since no message could carry the decision.
func AgentMaySend(k core.Kind) bool {
	switch k {
	case core.KindText, core.KindThinking, core.KindToolCall, core.KindToolState, core.KindToolResult, core.KindUsage, core.KindFile,
		core.KindSessionStarted, core.KindSessionLost, core.KindForeign:
		return true
	}
	return false
}

// progressShape names the members of an agent's task_progress that the hub knows.
var progressShape = func() shape {
	s := shape{"requestId": nil, "taskId": nil, "executionId": nil, "seq": nil}
	for _, name := range []string{"text", "thinking", "toolCall", "toolState", "toolResult", "usage", "file", "session", "foreign"} {
		s[name] = nil
	}
	return s
}()

// Name returns the name of the member that is set.
func (i Item) Name() string {
	for name, set := range map[string]bool{
		"text": i.Text != nil, "thinking": i.Thinking != nil, "toolCall": i.ToolCall != nil, "toolState": i.ToolState != nil,
		"toolResult": i.ToolResult != nil, "usage": i.Usage != nil, "file": i.File != nil, "session": i.Session != nil,
		"approvalRequested": i.ApprovalRequested != nil, "approvalDecided": i.ApprovalDecided != nil,
		"questionAsked": i.QuestionAsked != nil, "questionAnswered": i.QuestionAnswered != nil,
		"injectionAnswered": i.InjectionAnswered != nil, "retrying": i.Retrying != nil, "foreign": i.ForeignFrame != nil,
	} {
		if set {
			return name
		}
	}
	return ""
}

// MetadataItem returns the item of an event for the metadata of an end; nil for none.
func MetadataItem(e core.Event) json.RawMessage {
	if _, has := ItemOf(e.Body); !has {
		return nil
	}
	i, f := ItemOfEvent(e)
	raw, err := strictjson.Marshal(i)
	if err != nil {
		return nil // a tool's input was checked before
	}
	return overlay(raw, MembersOf(f)["payload"])
}
