package conversation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unique"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The roles of messages that are made of entries of other types.
const (
	RoleBranchSummary = "branchSummary"
	RoleCompaction    = "compactionSummary"
)

// MessageOf returns the message that an entry adds to the conversation; the role is "" when
// it adds none.
func MessageOf(e sessionfile.Entry) Message {
	stamp := func(b []byte) json.RawMessage {
		at, _ := time.Parse(time.RFC3339, e.Timestamp())
		return withTime(b, max(0, at.UnixMilli()))
	}
	switch e.Type {
	case sessionfile.TypeMessage:
		return ReadMessage(e.Message())
	case sessionfile.TypeCustomMessage:
		var b sessionfile.CustomMessage
		if e.Body(&b) == nil && len(b.Content) > 0 {
			head := strictjson.Encode(struct {
				Role string `json:"role"`
				sessionfile.CustomMessage
			}{RoleCustom, b})
			return Message{Role: RoleCustom, JSON: stamp(head[:len(head)-1])}
		}
	case sessionfile.TypeBranchSummary:
		var b sessionfile.BranchSummary
		if e.Body(&b) == nil && b.Summary != "" {
			m := strictjson.AppendString([]byte(`{"role":"`+RoleBranchSummary+`","summary":`), b.Summary)
			return Message{Role: RoleBranchSummary, JSON: stamp(strictjson.AppendString(append(m, `,"fromId":`...), b.FromID))}
		}
	case sessionfile.TypeCompaction:
		var b sessionfile.Compaction
		if e.Body(&b) == nil {
			m := strictjson.AppendString([]byte(`{"role":"`+RoleCompaction+`","summary":`), b.Summary)
			return Message{Role: RoleCompaction, JSON: stamp(strconv.AppendInt(append(m, `,"tokensBefore":`...), b.TokensBefore, 10))}
		}
	}
	return Message{}
}

// ReadMessage reads a message of a file.
func ReadMessage(raw json.RawMessage) Message {
	var shape struct {
		Role  string `json:"role"`
		Usage struct {
			Input      float64 `json:"input"`
			Output     float64 `json:"output"`
			CacheRead  float64 `json:"cacheRead"`
			CacheWrite float64 `json:"cacheWrite"`
		} `json:"usage"`
		Content json.RawMessage `json:"content"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &shape) != nil || shape.Role == "" {
		return Message{}
	}
	m := Message{Role: unique.Make(shape.Role).Value(), JSON: raw} // many entries share a role
	blocks := blocksOf(shape.Content)
	m.countBlocks(blocks)
	if m.Role == RoleAssistant {
		u := shape.Usage
		m.Usage = core.Usage{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)}
		for _, b := range blocks {
			if b.Type == "toolCall" {
				m.Calls++
			}
		}
	}
	return m
}

// Turns returns the latest messages that fit into a number of bytes, as turns for an agent
// that did not take part in the conversation.
func Turns(context []Message, bytes int) []core.Turn {
	turns, _ := latestTurns(context, bytes, Message.turn)
	return turns
}

// latestTurns returns the latest messages that fit into a number of bytes, and how many
// earlier ones do not. A summary at the beginning has priority, since it replaces the most.
// Unlike a book of core/thread, latestTurns decodes only the messages that fit.
func latestTurns(context []Message, bytes int, turn func(Message) (core.Turn, bool)) (turns []core.Turn, omitted int) {
	var summary []core.Turn
	if len(context) > 0 && context[0].Role == RoleCompaction {
		if t, ok := turn(context[0]); ok && t.Size() <= bytes {
			summary, bytes = []core.Turn{t}, bytes-t.Size()
			context = context[1:]
		}
	}
	for i, m := range slices.Backward(context) {
		if m.TextBytes > bytes { // need not be decoded
			omitted = i + 1
			break
		}
		t, ok := turn(m)
		if !ok {
			continue
		}
		if bytes -= t.Size(); bytes < 0 {
			omitted = i + 1
			break
		}
		turns = append(turns, t)
	}
	slices.Reverse(turns)
	return append(summary, turns...), omitted
}

// turn returns a message as a turn. It reports false for results of tools, which the
// agent's answers reflect, and for messages without text.
func (m Message) turn() (core.Turn, bool) {
	t, _, ok := m.turnWithBlocks()
	return t, ok
}

// turnWithBlocks is turn, and returns the decoded content as well.
func (m Message) turnWithBlocks() (t core.Turn, blocks []Block, ok bool) {
	var shape struct {
		Model     core.AgentID    `json:"model"`
		Timestamp float64         `json:"timestamp"`
		Excluded  bool            `json:"excludeFromContext"`
		Content   json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(m.JSON, &shape) // members of another type are left out
	blocks = blocksOf(shape.Content)
	t = core.Turn{Role: core.RoleUser, Text: m.plainText(blocks), At: time.UnixMilli(int64(shape.Timestamp))}
	switch {
	case m.Role == RoleTool || shape.Excluded || strings.TrimSpace(t.Text) == "":
		return t, blocks, false
	case m.Role == RoleAssistant:
		t.Role, t.Agent = core.RoleAssistant, shape.Model
	}
	return t, blocks, true
}

// PlainText returns a message as text.
func (m Message) PlainText() string { return m.plainText(m.Blocks()) }

// bashText is the text of a bash command.
const bashText = "I ran `%s`, which printed:\n\n%s"

// plainText is PlainText for a message with this content.
func (m Message) plainText(blocks []Block) string {
	var b struct {
		Summary string `json:"summary"`
		Command string `json:"command"`
		Output  string `json:"output"`
	}
	switch m.Role {
	case RoleCompaction, RoleBranchSummary, RoleBash:
		_ = json.Unmarshal(m.JSON, &b) // members of another type are left out
	}
	switch m.Role {
	case RoleCompaction:
		return "What was said before, in short:\n\n" + b.Summary
	case RoleBranchSummary:
		return "What was said on another branch, in short:\n\n" + b.Summary
	case RoleBash:
		return fmt.Sprintf(bashText, b.Command, b.Output)
	}
	return textIn(blocks)
}

// turnWithTools is turn with the tools that were used, for an agent that makes a summary:
// their input names the files.
func (m Message) turnWithTools() (core.Turn, bool) {
	t, blocks, ok := m.turnWithBlocks()
	if m.Calls == 0 {
		return t, ok
	}
	lines := []string{t.Text}
	for _, b := range blocks {
		if b.Type == "toolCall" {
			lines = append(lines, "[used "+b.Name+" with "+shorten(b.Arguments, 400)+"]")
		}
	}
	t.Role, t.Text = core.RoleAssistant, strings.TrimSpace(strings.Join(lines, "\n"))
	return t, true
}

// shorten cuts a text to most bytes, between characters.
func shorten(text []byte, most int) string {
	text = bytes.TrimSpace(text)
	if len(text) <= most {
		return string(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return string(text[:most]) + "…"
}
