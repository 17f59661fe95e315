package command_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestATableFitsTheTerminalAndNothingElse(t *testing.T) {
	input := "rm -rf " + strings.Repeat("build ", 60)
	at := fakeHub(t, map[string]string{
		"GET /v1/approvals": fmt.Sprintf(`{"approvals":[{"task":"%s","id":"1","agent":"claude","name":"Bash","input":"%s","input_sha256":"abcd","from":{"id":"ann"}},{"task":"%s","id":"2","input":"日本語"}]}`, firstID, input, secondID),
		"GET /v1/tasks":     fmt.Sprintf(`{"tasks":[{"id":"%s","state":"done","agent":"claude","from":{"id":"ann"},"opened_at":"2026-01-02T15:04:05Z","content":"%s"}]}`, firstID, input),
	})
	for _, width := range []uint16{60, 80, 120} {
		for _, list := range []string{"approvals", "tasks"} {
			screen := newScreen(t)
			screen.resize(t, width, 24)
			if code := <-screen.runs(t, list, at); code != command.ExitDone {
				t.Errorf("%s: got %d, want 0", list, code)
			}
			text := screen.shown()
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(line); n > int(width)+1 {
					t.Errorf("%s at %d columns: got %d characters in %q", list, width, n, line)
				}
			}
			if !strings.Contains(text, "…\n") || strings.Contains(text, firstID) || strings.Contains(text, "abcd") {
				t.Errorf("%s at %d columns: got\n%s\nwant the short id, and the input cut visibly", list, width, text)
			}
			if list == "approvals" && (!strings.Contains(text, "\n11774ba25 ") || !strings.Contains(text, "\n21774ba25 ")) {
				t.Errorf("got\n%s\nwant the shortest endings that differ", text)
			}
		}
	}
	screen := newScreen(t)
	if code := <-screen.runs(t, "approvals", "-o", "wide", at); code != command.ExitDone {
		t.Errorf("got %d, want 0", code)
	}
	if text := screen.shown(); !strings.Contains(text, firstID) || !strings.Contains(text, "abcd") || !strings.Contains(text, strings.TrimSpace(input)) {
		t.Errorf("-o wide: got\n%s\nwant all of it", text)
	}
	if _, out, _ := run(t, "approvals", at); !strings.Contains(out, firstID) || !strings.Contains(out, strings.TrimSpace(input)) || strings.Contains(out, "abcd") {
		t.Errorf("in a pipe: got\n%s\nwant whole ids and inputs", out)
	}
}
