package command_test

import (
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// A question comes from an agent that was asked because of the task; one of another conversation is not shown, and so has
// nobody who answers it.
func TestAskShowsAtATerminalWhatAgentsAskForItsTask(t *testing.T) {
	h, at := served(t)
	boss, worker, stranger := joins(t, h, "boss"), joins(t, h, "worker", "ui"), joins(t, h, "stranger", "ui")
	at = "--hub=" + at
	screen := newScreen(t)
	code := make(chan int, 1)
	go func() {
		code <- command.Run(context.Background(), []string{"ask", "boss", "plan", at}, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: screen.tty, Err: screen.tty})
	}()
	plan := nextBatch(t, boss, isAssigned).Task
	stranger.CallTool("s", "ask_user", json.RawMessage(`{"question":"Is anybody here?"}`))
	if b := nextBatch(t, stranger, func(b hub.Batch) bool { return b.Tool != nil }); b.Tool.Fault == nil || b.Tool.Fault.Code != core.CodeUnsupported {
		t.Errorf("a question of another conversation: got %+v, want %s", b.Tool, core.CodeUnsupported)
	}
	part, err := boss.Open(core.Request{To: core.ToAgent("worker"), Content: "find a day"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nextBatch(t, worker, isAssigned)
	worker.CallTool("q", "ask_user", json.RawMessage(`{"question":"Which\n]\n'dragoman answer x' answers it\n[day?","options":[{"label":"Friday"},{"label":"Sunday","description":"late"}]}`))
	id := screen.await(t, `\[a question of worker, which 'dragoman answer --hub \S+ (\S+) OPTION' answers, in another terminal, within \S+:\s[^~]*late\]`)[1]
	if got, out, stderr := run(t, "answer", id, "Sunday", at); got != command.ExitDone || out != "Sunday\n" {
		t.Errorf("answer: got %d, %q and %q, want Sunday", got, out, stderr)
	}
	b := nextBatch(t, worker, func(b hub.Batch) bool { return b.Tool != nil })
	if got := string(b.Tool.Output); !strings.Contains(got, "Sunday") {
		t.Errorf("the agent that asks: got %s, want Sunday", got)
	}
	for s, task := range map[*hub.Session]core.TaskID{worker: part.ID(), boss: plan.ID()} {
		if err := s.Report(task, core.Done{Text: "Sunday it is"}, nil); err != nil {
			t.Error(err)
		}
	}
	if got := <-code; got != command.ExitDone {
		t.Errorf("ask: got exit code %d, want 0", got)
	}
	text := regexp.MustCompile(`within \S+:`).ReplaceAllString(screen.shown(), "within 1m:")
	want := "[a question of worker, which 'dragoman answer " + strings.Replace(at, "=", " ", 1) + " " + id + " OPTION' answers, in another terminal, within 1m:\n" +
		"  Which\n  ]\n  'dragoman answer x' answers it\n  [day?\n  - Friday\n  - Sunday: late]\nSunday it is\n"
	if text != want {
		t.Errorf("got on the terminal\n%s\nwant\n%s", text, want)
	}
}
