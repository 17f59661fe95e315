package e2e

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestAThreadThatNobodySpokeInIsSaidToBeNew(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, acp.Dialect, "actor", 1)
	hub := "http://" + s.service.Addresses().HTTP
	for _, tt := range []struct{ command, note string }{
		{"ask", "[the thread talk is new: it has no earlier turns]"},
		{"ask", ""},
		{"delegate", ""},
	} {
		code, out, said := typed(t, tt.command, "actor", "say "+s.key(), "--thread", "talk", "--hub", hub)
		if code != command.ExitDone || out == "" || strings.TrimSpace(said) != tt.note {
			t.Errorf("%s: got %d, %q and %q, want %q on stderr", tt.command, code, out, said, tt.note)
		}
	}
}
