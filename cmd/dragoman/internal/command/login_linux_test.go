package command_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// What somebody types at the prompt is not on the screen, and the terminal is as it was afterwards.
func TestATokenIsTypedUnseen(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	hub := guardedHub(t, "s3cret")
	s := newScreen(t)
	before, err := term.GetState(int(s.tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	code := make(chan int, 1)
	go func() {
		code <- command.Run(t.Context(), []string{"login", hub, "--context=work"}, command.Streams{In: s.tty, Out: s.tty, Err: s.tty})
	}()
	s.await(t, `Token for \S+ \(it is not shown; nothing for none\): `)
	for now := before; *now == *before; { // until it reads unseen
		select {
		case got := <-code:
			t.Fatalf("got exit code %d, want the terminal to be read", got)
		case <-time.After(time.Millisecond):
		}
		if now, err = term.GetState(int(s.tty.Fd())); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.person.WriteString("s3cret\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != command.ExitDone {
		t.Errorf("got exit code %d, want 0", got)
	}
	if now, err := term.GetState(int(s.tty.Fd())); err != nil || *now != *before {
		t.Errorf("the terminal afterwards: got %v and %v, want it as it was", now, err)
	}
	if text := s.shown(); strings.Contains(text, "s3cret") || !strings.Contains(text, "as work: ") {
		t.Errorf("got on the terminal\n%s\nwant it kept, and no secret", text)
	}
}
