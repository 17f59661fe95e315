package command_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// reports has an agent say something of a task.
func reports(t *testing.T, s *hub.Session, id core.TaskID, bodies ...core.Body) {
	t.Helper()
	for _, body := range bodies {
		if err := s.Report(id, body, nil); err != nil {
			t.Fatalf("%s: got %v, want it taken", body.Kind(), err)
		}
	}
}

func isCancelRequested(b hub.Batch) bool {
	for _, e := range b.Events {
		if e.Body.Kind() == core.KindCancelRequested {
			return true
		}
	}
	return false
}

func TestChatIsAConversationAtATerminal(t *testing.T) {
	for _, kind := range []struct {
		term, enter string
		width       uint16
	}{{"xterm", "\r", 60}, {"xterm", "\r", 120}, {"dumb", "\n", 80}} {
		t.Run(fmt.Sprint(kind.term, " of ", kind.width), func(t *testing.T) {
			t.Setenv("TERM", kind.term)
			t.Setenv("NO_COLOR", "1")
			h, at := served(t)
			worker, other := joins(t, h, "worker"), joins(t, h, "other", "ui")
			screen := newScreen(t)
			screen.resize(t, kind.width, 24)
			code := screen.runs(t, "chat", "worker", "--hub="+at)
			typeLine := func(line string) { screen.types(t, line+kind.enter) }

			screen.await(t, `worker> $`)
			typeLine("hello")
			first := nextBatch(t, worker, isAssigned).Task
			reports(t, worker, first.ID(), core.Usage{Input: 3, Output: 4}, core.Text{Text: "Hel"}, core.Text{Text: "lo\x1b\n"}, core.ToolCall{ID: "1", Name: "Bash", Input: "rm"}, core.ApprovalRequested{ID: "1", Name: "Bash", Input: "rm"})
			screen.await(t, `Hello\\x1b\r\n[^~]*Allow Bash: rm\? \[y\]es, \[n\]o: $`)
			typeLine("y")
			if d := decisionIn(nextBatch(t, worker, func(b hub.Batch) bool { return decisionIn(b) != nil })); !d.Approved || d.InputSHA256 != core.InputDigest("rm") {
				t.Errorf("y: got %+v, want this input approved", d)
			}
			reports(t, worker, first.ID(), core.Done{Text: "Hello"})

			screen.await(t, `approved by local\]\r\n[^~]*worker> $`)
			typeLine("/usage")
			screen.await(t, `\[7 tokens: 3 input, 4 output`)
			typeLine("/agent other")
			screen.await(t, `other> $`)
			typeLine("//go on")
			second := nextBatch(t, other, isAssigned).Task
			if got := second.Request(); got.Content != "/go on" || got.Thread != core.ThreadID(first.ID()) && got.Thread != first.Request().Thread {
				t.Errorf("got %q in conversation %s, want /go on in that of the first question", got.Content, got.Thread)
			}
			screen.await(t, `\[handed over from worker with 2 turns\]\r\n`)
			reports(t, other, second.ID(), core.Text{Text: "I begin\n"})
			screen.await(t, `I begin\r\n`)
			if kind.term == "dumb" { // it is no controlling terminal, so Ctrl-C sends no signal
				_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
			} else {
				screen.types(t, "\x03")
			}
			screen.await(t, `cancelling: interrupt again to leave`)
			nextBatch(t, other, isCancelRequested)
			reports(t, other, second.ID(), core.Cancelled{Reason: "as you wish"})
			screen.await(t, `cancelled.*\r\n[^~]*other> $`)
			typeLine("/again")
			third := nextBatch(t, other, isAssigned).Task
			if got := third.Request().Content; got != "/go on" {
				t.Errorf("/again: got %q, want /go on", got)
			}
			other.CallTool("q", "ask_user", []byte(`{"question":"Which day?"}`))
			screen.await(t, `other asks: Which day\?`)
			reports(t, other, third.ID(), core.Failed{Fault: core.NewFault(core.CodeOverloaded, "later")})
			screen.await(t, `nobody has answered: the task ended before\]\r\n[^~]*/again asks again\]\r\n[^~]*other> $`)
			screen.types(t, "\x04")
			if got := <-code; got != command.ExitDone {
				t.Errorf("got exit code %d, want 0", got)
			}
			text := screen.shown()
			if want := "[to go on: dragoman chat --hub " + at + " other --thread " + string(second.Request().Thread) + "]"; !strings.Contains(text, want) {
				t.Errorf("got\n%s\nwant how to go on: %s", text, want)
			}
			if kind.term == "dumb" && strings.Contains(text, "\x1b") {
				t.Errorf("got %q, want no line that changes", text)
			}
		})
	}
}

func TestChatAsksEachLineOfAPipe(t *testing.T) {
	h, at := served(t)
	worker := joins(t, h, "worker")
	answered := make(chan []core.ThreadID)
	go func() {
		var threads []core.ThreadID
		for range 3 {
			task := nextBatch(t, worker, isAssigned).Task
			threads = append(threads, task.Thread())
			end := core.Body(core.Done{Text: "to " + task.Request().Content})
			if len(threads) == 3 {
				end = core.Failed{Fault: core.NewFault(core.CodeInternal, "no more")}
			}
			_ = worker.Report(task.ID(), end, nil)
		}
		answered <- threads
	}()
	code, out, stderr := runWith(t, "one\n\ntwo\nthree\nfour", "chat", "worker", "--hub="+at)
	if code != command.ExitFailed || out != "to one\nto two\n" || stderr != "dragoman: the task failed (internal): no more\n" {
		t.Errorf("got %d, %q and %q, want two answers and the failure", code, out, stderr)
	}
	if threads := <-answered; threads[0] != threads[1] || threads[1] != threads[2] {
		t.Errorf("got the conversations %q, want one", threads)
	}
}
