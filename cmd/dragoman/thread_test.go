package main

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
)

func TestAThreadThatNobodySpokeInIsSaidToBeNew(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, acp.Dialect, "actor", 1)
	hub := "http://" + s.service.bound.HTTP
	for _, tt := range []struct{ command, note string }{
		{"ask", "[the thread talk is new: nothing was said in it before]"},
		{"ask", ""},
		{"delegate", ""},
	} {
		code, out, said := typed(t, tt.command, "actor", "say "+s.key(), "--thread", "talk", "--hub", hub)
		if code != exitDone || out == "" || strings.TrimSpace(said) != tt.note {
			t.Errorf("%s: got %d, %q and %q, want %q on stderr", tt.command, code, out, said, tt.note)
		}
	}
}
