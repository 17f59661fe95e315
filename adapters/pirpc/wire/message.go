package wire

import (
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The stop reasons of a message of the assistant (docs/rpc.md of pi, "AssistantMessage").
const (
	StopDone    = "stop"
	StopLength  = "length"
	StopTools   = "toolUse"
	StopError   = "error"
	StopAborted = "aborted"
)

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "toolResult"
)

// Message is a message of the conversation, with the members that the hub uses.
type Message struct {
	Role string
	// Text is the text of all text blocks of the assistant, joined without anything between.
	Text string
	// Thoughts are its thinking blocks, by their index in the content.
	Thoughts     map[int]string
	Usage        core.Usage
	StopReason   string
	ErrorMessage string
}

// piCurrency is that of the prices of pi.
const piCurrency = "USD"

// messageOf reads a message.
func messageOf(v strictjson.Value) (Message, error) {
	var m struct {
		Role    string           `json:"role"`
		Content strictjson.Value `json:"content"`
		Usage   struct {
			Input      int64 `json:"input"`
			Output     int64 `json:"output"`
			CacheRead  int64 `json:"cacheRead"`
			CacheWrite int64 `json:"cacheWrite"`
			Reasoning  int64 `json:"reasoning"`
			Cost       struct {
				Total float64 `json:"total"`
			} `json:"cost"`
		} `json:"usage"`
		Model        string `json:"model"`
		StopReason   string `json:"stopReason"`
		ErrorMessage string `json:"errorMessage"`
	}
	if err := v.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("message: %w", err)
	}
	u := m.Usage
	thinking := min(max(0, u.Reasoning), max(0, u.Output)) // it is part of the output
	message := Message{
		Role: m.Role, StopReason: m.StopReason, ErrorMessage: m.ErrorMessage,
		Usage: core.Usage{
			Input: max(0, u.Input), Output: max(0, u.Output) - thinking, CacheRead: max(0, u.CacheRead), CacheWrite: max(0, u.CacheWrite),
			Thinking: thinking,
		},
	}
	if message.Usage != (core.Usage{}) {
		message.Usage.Model = m.Model
	}
	if u.Cost.Total > 0 { // pi tells 0 for a model whose price it does not know
		message.Usage.Cost, _ = core.MoneyOf(u.Cost.Total, piCurrency)
	}
	if m.Role != RoleAssistant {
		return message, nil
	}
	var b strings.Builder
	if text, is := m.Content.Text(); is {
		b.WriteString(text)
	}
	i := 0
	for block := range m.Content.Items() {
		if text, is := block.Get("text").Text(); is {
			b.WriteString(text)
		}
		if text, is := block.Get("thinking").Text(); is && text != "" {
			if message.Thoughts == nil {
				message.Thoughts = map[int]string{}
			}
			message.Thoughts[i] = text
		}
		i++
	}
	message.Text = b.String()
	return message, nil
}

// contentText returns the text of a content: its text blocks, and a note for each image.
func contentText(content strictjson.Value) string {
	if text, is := content.Text(); is {
		return text
	}
	var b strings.Builder
	for block := range content.Items() {
		switch kind, _ := block.Get("type").Text(); kind {
		case "text":
			text, _ := block.Get("text").Text()
			b.WriteString(text)
		case "image":
			mediaType, _ := block.Get("mimeType").Text()
			fmt.Fprintf(&b, "[image %s, %d bytes]", mediaType, len(block.Get("data").Raw())/4*3)
		}
	}
	return b.String()
}
