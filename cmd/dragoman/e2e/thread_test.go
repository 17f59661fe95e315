package e2e

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestAskReportsANewThread(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, acp.Dialect, "actor", 1)
	hub := h.url()
	for _, tt := range []struct{ command, note string }{
		{"ask", "[the thread talk is new: it has no earlier turns]"},
		{"ask", ""},
		{"delegate", ""},
	} {
		code, out, printed := run(t, tt.command, "actor", "say "+h.key(), "--thread", "talk", "--hub", hub)
		if code != command.ExitDone || out == "" || strings.TrimSpace(printed) != tt.note {
			t.Errorf("%s: got %d, %q and %q, want %q on stderr", tt.command, code, out, printed, tt.note)
		}
	}
}
