package command_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// Long work is shown on a terminal alone, from its third second on, in a line that is gone at its end.
func TestLongWorkIsShownOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	tty, shown := terminal(t)
	var file bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		short := command.StartProgress(tty, "short")
		time.Sleep(1900 * time.Millisecond)
		short.End()
		elsewhere := command.StartProgress(&file, "elsewhere")
		long := command.StartProgress(tty, "row 1")
		time.Sleep(2400 * time.Millisecond)
		long.Say("row", "2\x1b")
		time.Sleep(200 * time.Millisecond)
		long.End()
		long.End()
		elsewhere.End()
	})
	const cleared = "\r\x1b[K"
	if got, want := shown(), cleared+"row 1 · 2 s"+cleared+"row · 3 s · 2\\x1b"+cleared; got != want || file.Len() > 0 {
		t.Errorf("got %q on the terminal and %q elsewhere, want %q and nothing", got, file.String(), want)
	}
}

func TestADumbTerminalIsShownNoProgress(t *testing.T) {
	t.Setenv("TERM", "dumb")
	tty, shown := terminal(t)
	synctest.Test(t, func(t *testing.T) {
		p := command.StartProgress(tty, "long")
		time.Sleep(5 * time.Second)
		p.End()
	})
	if got := shown(); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}
