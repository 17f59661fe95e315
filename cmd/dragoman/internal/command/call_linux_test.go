package command_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	hubpack "github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestACallShowsWhatItsToolSaysAndAsksAtTheTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	h, at := served(t)
	form := &question.Form{Name: "place", Message: "Where?", Decline: "Decline to answer", Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}
	goOn := make(chan struct{})
	provides(t, h, "maps", []tool.Definition{{Name: "maps.find"}}, func(s *hub.Session, e *hubpack.Execution) tool.Result {
		if err := s.ProgressTool(e.ID, "unfolding\x1b[2J the map"); err != nil {
			t.Error(err)
		}
		<-goOn
		o, err := s.AskCaller(t.Context(), e.ID, question.Question{Text: "Where?", Options: []core.Option{{Label: form.Decline}}, Form: form})
		if err != nil {
			return tool.Result{Fault: core.AsFault(err)}
		}
		return tool.Result{Output: o.Content}
	})
	screen := newScreen(t)
	code := screen.runs(t, "call", "maps.find", "--hub="+at)
	screen.await(t, `maps\.find · \d+ s · unfolding\\x1b\[2J the map`)
	close(goOn)
	screen.await(t, `Where\?\r\n[^~]*: $`)
	screen.types(t, "Rome\n")
	if got := <-code; got != command.ExitDone {
		t.Errorf("got exit code %d, want 0", got)
	}
	if text := screen.shown(); !strings.Contains(text, "\n"+`{"city":"Rome"}`+"\n") {
		t.Errorf("got\n%s\nwant the result on a line of its own", text)
	}
}

func TestAnInterruptCancelsACall(t *testing.T) {
	for name, asks := range map[string]bool{"while it runs": false, "while it asks": true} {
		t.Run(name, func(t *testing.T) {
			h, at := served(t)
			begun, ended := make(chan struct{}), make(chan error, 1)
			s := h.Connect(hub.Identity{Principal: core.Principal{ID: "maps"}, Dialect: "test"})
			t.Cleanup(func() { s.Close(nil) })
			if err := s.Provide("maps", []tool.Definition{{Name: "maps.find"}}); err != nil {
				t.Fatal(err)
			}
			go func() {
				defer close(ended)
				for {
					b, err := s.Next(t.Context())
					switch {
					case err != nil:
						ended <- err
						return
					case b.Execute != nil && asks:
						go func() {
							_, _ = s.AskCaller(t.Context(), b.Execute.ID, question.Question{Text: "Where?"}) // nobody answers
						}()
						close(begun)
					case b.Execute != nil:
						close(begun)
					case b.Withdrawn != "":
						return
					}
				}
			}()
			screen := newScreen(t)
			code := screen.runs(t, "call", "maps.find", "--hub="+at)
			<-begun
			if asks {
				screen.await(t, `Where\?`)
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if got := <-code; got != command.ExitInterrupted {
				t.Errorf("got exit code %d, want %d", got, command.ExitInterrupted)
			}
			if err := <-ended; err != nil {
				t.Errorf("the pack: got %v, want the call withdrawn", err)
			}
		})
	}
}
