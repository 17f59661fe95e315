package pi_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
)

// Every reader of the format can read a line with any arguments of a tool.
func TestAFileWithAnyToolArgumentsCanBeLoaded(t *testing.T) {
	for name, input := range map[string]string{
		"lines of JSON":      "{\n  \"path\": \"a\",\r\n\t\"lines\": [1,\n2]\n}",
		"a key twice":        `{"path":"a","path":"b"}`,
		"nested deeply":      strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200),
		"nested almost so":   strings.Repeat(`{"a":`, 62) + "1" + strings.Repeat("}", 62),
		"no JSON":            `{"path":`,
		"no object":          "[1,\n2]",
		"a NUL in a key":     "{\"a\\u0000b\":1}",
		"no UTF-8":           "{\"a\":\"\xff\"}",
		"a key in two cases": `{"Path":"a","path":"b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			h, s := newServer(t, pi.Options{SessionDir: t.TempDir()})
			joinAgent(t, h, core.Card{ID: "x"}, answerWith(core.ToolCall{ID: "1", Name: "read", Input: input}, core.ToolResult{ID: "1", Output: "got"}, core.Text{Text: "done"}, core.Done{}))
			c := dial(t, s, pi.ConnOptions{})
			c.open("s", "x")
			c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
			flush(s)
			if got, want := kindsIn(readFile(t, fileOf(c, "s"))), "model_change user assistant toolResult assistant"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
