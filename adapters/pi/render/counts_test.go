package render_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

func TestRenderedAndParsedMessagesHaveTheSameCounts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`[a-zäß"\\\n ]{0,40}`)
		v := newRecord()
		for range rapid.IntRange(1, 6).Draw(rt, "events") {
			var b core.Body
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0:
				b = core.Thinking{Text: text.Draw(rt, "thought")}
			case 1:
				b = core.ToolCall{ID: "1", Name: "read", Input: `{"path":"` + rapid.StringMatching(`[a-z]{0,9}`).Draw(rt, "path") + `"}`}
			case 2:
				b = core.ToolResult{ID: "1", Output: text.Draw(rt, "output")}
			case 3:
				b = core.File{Name: "f", MediaType: "image/png", Data: []byte("x")}
			default:
				b = core.Text{Text: text.Draw(rt, "text")}
			}
			_ = core.Event{At: atNoon, Body: b}.Deliver(v)
		}
		_ = core.Event{At: atNoon, Body: core.Done{}}.Deliver(v)
		all := append(v.TakeMessages(), conversation.UserMessage(text.Draw(rt, "question"), []core.File{{MediaType: "image/png"}}, 1),
			conversation.BashMessage("ls", text.Draw(rt, "printed"), 0, false, false, false, 1))
		for _, m := range all {
			read := conversation.ReadMessage(m.JSON)
			if m.Tokens > 0 && m.Tokens != read.Tokens {
				rt.Errorf("got %d tokens as rendered and %d as parsed, want the same: %s", m.Tokens, read.Tokens, m.JSON)
			}
			if m.TextBytes > len(read.Text()) {
				rt.Errorf("got %d bytes of text as rendered, want at most %d: %s", m.TextBytes, len(read.Text()), m.JSON)
			}
			if read.TextBytes != len(read.Text()) {
				rt.Errorf("got %d bytes of text as parsed, want %d: %s", read.TextBytes, len(read.Text()), m.JSON)
			}
		}
	})
}
