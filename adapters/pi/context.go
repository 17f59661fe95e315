package pi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// The roles of messages that entries of other types stand for.
const (
	roleBranchSummary = "branchSummary"
	roleCompaction    = "compactionSummary"
)

// messageOfEntry returns what an entry says in the conversation; its role is "" when
// that is nothing.
func messageOfEntry(e sessionfile.Entry) message {
	stamp := func(b []byte) json.RawMessage {
		at, _ := time.Parse(time.RFC3339, e.Timestamp())
		return append(strconv.AppendInt(append(b, `,"timestamp":`...), max(0, at.UnixMilli()), 10), '}')
	}
	switch e.Type {
	case sessionfile.TypeMessage:
		return readMessage(e.Message())
	case sessionfile.TypeCustomMessage:
		var b sessionfile.CustomMessage
		if e.Body(&b) == nil && len(b.Content) > 0 {
			head := wire.Encode(struct {
				Role string `json:"role"`
				sessionfile.CustomMessage
			}{roleCustom, b})
			return message{role: roleCustom, json: stamp(head[:len(head)-1])}
		}
	case sessionfile.TypeBranchSummary:
		var b sessionfile.BranchSummary
		if e.Body(&b) == nil && b.Summary != "" {
			m := wire.AppendString([]byte(`{"role":"`+roleBranchSummary+`","summary":`), b.Summary)
			return message{role: roleBranchSummary, json: stamp(wire.AppendString(append(m, `,"fromId":`...), b.FromID))}
		}
	case sessionfile.TypeCompaction:
		var b sessionfile.Compaction
		if e.Body(&b) == nil {
			m := wire.AppendString([]byte(`{"role":"`+roleCompaction+`","summary":`), b.Summary)
			return message{role: roleCompaction, json: stamp(strconv.AppendInt(append(m, `,"tokensBefore":`...), b.TokensBefore, 10))}
		}
	}
	return message{}
}

// readMessage reads a message of a file.
func readMessage(raw json.RawMessage) message {
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
		return message{}
	}
	m := message{role: unique.Make(shape.Role).Value(), json: raw} // entries stay
	blocks := blocksOf(shape.Content)
	m.countBlocks(blocks)
	if m.role == roleAssistant {
		u := shape.Usage
		m.usage = core.Usage{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)}
		for _, b := range blocks {
			if b.Type == "toolCall" {
				m.calls++
			}
		}
	}
	return m
}

// turns returns the latest of the conversation that fit into so many bytes, as an
// agent is told them that was not there.
func turns(context []message, bytes int) []core.Turn {
	told, _ := fit(context, bytes, message.turn)
	return told
}

// fit returns the latest of the conversation that fit into so many bytes, and how many
// messages before these do not. A summary that the conversation begins with goes
// before all others: it stands for the most.
func fit(context []message, bytes int, turn func(message) (core.Turn, bool)) (told []core.Turn, left int) {
	var summary []core.Turn
	if len(context) > 0 && context[0].role == roleCompaction {
		if t, ok := turn(context[0]); ok && t.Size() <= bytes {
			summary, bytes = []core.Turn{t}, bytes-t.Size()
			context = context[1:]
		}
	}
	for i, m := range slices.Backward(context) {
		if m.words > bytes { // it need not be read
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
func (m message) turn() (core.Turn, bool) {
	t, _, ok := m.turnAndBlocks()
	return t, ok
}

// turnAndBlocks is turn with the content of the message, which is decoded once for both.
func (m message) turnAndBlocks() (t core.Turn, blocks []contentBlock, ok bool) {
	var shape struct {
		Model     core.AgentID    `json:"model"`
		Timestamp float64         `json:"timestamp"`
		Excluded  bool            `json:"excludeFromContext"`
		Content   json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(m.json, &shape) // what is of another type is not told
	blocks = blocksOf(shape.Content)
	t = core.Turn{Role: core.RoleUser, Text: m.spokenAs(blocks), At: time.UnixMilli(int64(shape.Timestamp))}
	switch {
	case m.role == roleTool || shape.Excluded || strings.TrimSpace(t.Text) == "":
		return t, blocks, false
	case m.role == roleAssistant:
		t.Role, t.Agent = core.RoleAssistant, shape.Model
	}
	return t, blocks, true
}

// spoken is a message in words.
func (m message) spoken() string { return m.spokenAs(m.blocks()) }

// ranWords is how a bash command is told in words.
const ranWords = "I ran `%s`, which printed:\n\n%s"

// spokenAs is spoken of a message with this content.
func (m message) spokenAs(blocks []contentBlock) string {
	var b struct {
		Summary string `json:"summary"`
		Command string `json:"command"`
		Output  string `json:"output"`
	}
	switch m.role {
	case roleCompaction, roleBranchSummary, roleBash:
		_ = json.Unmarshal(m.json, &b) // what is of another type is left out
	}
	switch m.role {
	case roleCompaction:
		return "What was said before, in short:\n\n" + b.Summary
	case roleBranchSummary:
		return "What was said on another branch, in short:\n\n" + b.Summary
	case roleBash:
		return fmt.Sprintf(ranWords, b.Command, b.Output)
	}
	return textIn(blocks)
}
