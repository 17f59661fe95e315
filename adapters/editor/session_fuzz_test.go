package editor_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
)

// FuzzSession checks that no message of an editor, one a line, closes its connection or
// disturbs a prompt that runs. SESSION and ASKED stand for the ids of the session and of the
// permission request. The promises of the hub are checked after each run.
func FuzzSession(f *testing.F) {
	for _, lines := range []string{
		`{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"sessionId":"SESSION","prompt":[{"type":"resource","resource":{"uri":"file:///a","blob":"AQ=="}}]}}`,
		`{"jsonrpc":"2.0","id":9,"method":"session/load","params":{"sessionId":"SESSION","cwd":"/a","mcpServers":[]}}`,
		`{"jsonrpc":"2.0","id":9,"method":"session/resume","params":{"sessionId":"other","cwd":"/a"}}` + "\n" + `{"jsonrpc":"2.0","id":9,"method":"session/list","params":{"cursor":"0"}}`,
		`{"jsonrpc":"2.0","id":null,"method":"session/new","params":{"cwd":"C:\\a","mcpServers":[{"type":"http","name":"x","url":"u","headers":[]}]}}`,
		`{"jsonrpc":"2.0","id":ASKED,"result":{"outcome":{"outcome":"selected","optionId":"allow_always"}}}` + "\n" + `{"jsonrpc":"2.0","id":ASKED,"result":{}}`,
		`{"jsonrpc":"2.0","id":ASKED,"error":{"code":-32601,"message":"no"}}`,
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nope"}}` + "\n" + `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[1]}}`,
		`{"jsonrpc":"2.0","id":"9","method":"initialize","params":{"protocolVersion":1.0}}` + "\n[]\n{}\nnull\n\x00",
	} {
		f.Add([]byte(lines))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		withHub(t, func(s *setup) {
			c, session := s.begun(editor.Options{}, `{"elicitation":{"form":{}}}`)
			c.prompt(2, session, "run")
			task := s.assigned()
			s.say(task, core.ApprovalRequested{ID: "t1", Name: "rm", Input: "{}"})
			_, asked := c.asked("session/request_permission")
			fill := strings.NewReplacer("SESSION", session, "ASKED", asked.String())
			stops := []string{"session/cancel", "session/close", "cancel_request"}
			for line := range bytes.Lines(lines) {
				text := fill.Replace(string(bytes.TrimSpace(line)))
				if strings.Contains(text, session) && (strings.Contains(text, stops[0]) || strings.Contains(text, stops[1])) || strings.Contains(text, stops[2]) || strings.Contains(text, `\u`) {
					continue // may end the prompt
				}
				if err := c.conn.Send(s.Context(), []byte(text)); err != nil {
					s.Fatalf("%q: got %v, want the connection open", text, err)
				}
				c.drain()
			}
			s.say(task, core.Text{Text: "the end"}, core.Done{})
			for c.receive().raw != ended(2, "end_turn") {
			}
		})
	})
}

// drain reads the messages sent so far.
func (c *client) drain() {
	for {
		synctest.Wait()
		ctx, cancel := context.WithCancel(c.Context())
		cancel()
		if _, err := c.conn.Receive(ctx); err != nil {
			return
		}
	}
}
