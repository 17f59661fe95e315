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
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// The roles of messages that entries of other types stand for.
const (
	RoleBranchSummary = "branchSummary"
	RoleCompaction    = "compactionSummary"
)

// MessageOf returns what an entry says in the conversation; its role is "" when
// that is nothing.
func MessageOf(e sessionfile.Entry) Message {
	stamp := func(b []byte) json.RawMessage {
		at, _ := time.Parse(time.RFC3339, e.Timestamp())
		return append(strconv.AppendInt(append(b, `,"timestamp":`...), max(0, at.UnixMilli()), 10), '}')
	}
	switch e.Type {
	case sessionfile.TypeMessage:
		return ReadMessage(e.Message())
	case sessionfile.TypeCustomMessage:
		var b sessionfile.CustomMessage
		if e.Body(&b) == nil && len(b.Content) > 0 {
			head := wire.Encode(struct {
				Role string `json:"role"`
				sessionfile.CustomMessage
			}{RoleCustom, b})
			return Message{Role: RoleCustom, JSON: stamp(head[:len(head)-1])}
		}
	case sessionfile.TypeBranchSummary:
		var b sessionfile.BranchSummary
		if e.Body(&b) == nil && b.Summary != "" {
			m := wire.AppendString([]byte(`{"role":"`+RoleBranchSummary+`","summary":`), b.Summary)
			return Message{Role: RoleBranchSummary, JSON: stamp(wire.AppendString(append(m, `,"fromId":`...), b.FromID))}
		}
	case sessionfile.TypeCompaction:
		var b sessionfile.Compaction
		if e.Body(&b) == nil {
			m := wire.AppendString([]byte(`{"role":"`+RoleCompaction+`","summary":`), b.Summary)
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
	m := Message{Role: unique.Make(shape.Role).Value(), JSON: raw} // entries stay
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

// Turns returns the latest of the conversation that fit into so many bytes, as an
// agent is told them that was not there.
func Turns(context []Message, bytes int) []core.Turn {
	told, _ := fit(context, bytes, Message.turn)
	return told
}

// fit returns the latest of the conversation that fit into so many bytes, and how many
// messages before these do not. A summary that the conversation begins with goes
// before all others: it stands for the most.
func fit(context []Message, bytes int, turn func(Message) (core.Turn, bool)) (told []core.Turn, left int) {
	var summary []core.Turn
	if len(context) > 0 && context[0].Role == RoleCompaction {
		if t, ok := turn(context[0]); ok && t.Size() <= bytes {
			summary, bytes = []core.Turn{t}, bytes-t.Size()
			context = context[1:]
		}
	}
	for i, m := range slices.Backward(context) {
		if m.TextBytes > bytes { // it need not be read
			left = i + 1
			break
		}
		t, ok := turn(m)
		if !ok {
			continue
		}
		if bytes -= t.Size(); bytes < 0 {
			left = i + 1
			break
		}
		told = append(told, t)
	}
	slices.Reverse(told)
	return append(summary, told...), left
}

// turn returns a message as a turn of words. What tools came to is none: it shows in
// what the agent said of it.
func (m Message) turn() (core.Turn, bool) {
	t, _, ok := m.turnAndBlocks()
	return t, ok
}

// turnAndBlocks is turn with the content of the message, which is decoded once for both.
func (m Message) turnAndBlocks() (t core.Turn, blocks []Block, ok bool) {
	var shape struct {
		Model     core.AgentID    `json:"model"`
		Timestamp float64         `json:"timestamp"`
		Excluded  bool            `json:"excludeFromContext"`
		Content   json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(m.JSON, &shape) // what is of another type is not told
	blocks = blocksOf(shape.Content)
	t = core.Turn{Role: core.RoleUser, Text: m.spokenAs(blocks), At: time.UnixMilli(int64(shape.Timestamp))}
	switch {
	case m.Role == RoleTool || shape.Excluded || strings.TrimSpace(t.Text) == "":
		return t, blocks, false
	case m.Role == RoleAssistant:
		t.Role, t.Agent = core.RoleAssistant, shape.Model
	}
	return t, blocks, true
}

// PlainText is a message in words.
func (m Message) PlainText() string { return m.spokenAs(m.Blocks()) }

// ranWords is how a bash command is told in words.
const ranWords = "I ran `%s`, which printed:\n\n%s"

// spokenAs is spoken of a message with this content.
func (m Message) spokenAs(blocks []Block) string {
	var b struct {
		Summary string `json:"summary"`
		Command string `json:"command"`
		Output  string `json:"output"`
	}
	switch m.Role {
	case RoleCompaction, RoleBranchSummary, RoleBash:
		_ = json.Unmarshal(m.JSON, &b) // what is of another type is left out
	}
	switch m.Role {
	case RoleCompaction:
		return "What was said before, in short:\n\n" + b.Summary
	case RoleBranchSummary:
		return "What was said on another branch, in short:\n\n" + b.Summary
	case RoleBash:
		return fmt.Sprintf(ranWords, b.Command, b.Output)
	}
	return textIn(blocks)
}

// turnWithTools is a message as a turn with the tools that were used in it, of which an
// agent that makes a summary has to know: their input names the files.
func (m Message) turnWithTools() (core.Turn, bool) {
	t, blocks, ok := m.turnAndBlocks()
	if m.Calls == 0 {
		return t, ok
	}
	lines := []string{t.Text}
	for _, b := range blocks {
		if b.Type == "toolCall" {
			lines = append(lines, "[used "+b.Name+" with "+shortened(b.Arguments, 400)+"]")
		}
	}
	t.Role, t.Text = core.RoleAssistant, strings.TrimSpace(strings.Join(lines, "\n"))
	return t, true
}

// shortened is the beginning of a text that is longer than so many bytes.
func shortened(text []byte, most int) string {
	text = bytes.TrimSpace(text)
	if len(text) <= most {
		return string(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return string(text[:most]) + "…"
}
