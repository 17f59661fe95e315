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

func TestChatGoesOnInABranch(t *testing.T) {
	h, at := served(t)
	worker := joins(t, h, "worker")
	answers := []core.Body{core.Done{Text: "1"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")}, core.Done{Text: "2"}, core.Done{Text: "3"}}
	screen := newScreen(t)
	code := screen.runs(t, "chat", "worker", "--hub="+at)
	ask := func(line string) core.Request {
		screen.await(t, `worker> $`)
		screen.types(t, line+"\r")
		task := nextBatch(t, worker, isAssigned).Task
		r := task.Request()
		reports(t, worker, task.ID(), answers[0])
		answers = answers[1:]
		return r
	}
	screen.await(t, `worker> $`)
	screen.types(t, "/branch\r")
	screen.await(t, `nothing has been asked yet`)
	first := ask("one?")
	screen.await(t, `1\r\n[^~]*worker> $`)
	screen.types(t, "/branch\r")
	screen.await(t, `in a new conversation, which begins with this one so far\]`)
	failed := ask("two?")
	screen.await(t, `broke`)
	second := ask("and two?")
	for _, r := range []core.Request{failed, second} {
		if len(r.History) != 2 || r.Branch == "" || r.Thread == first.Thread {
			t.Errorf("got %d turns, branched from %q, in %q, want the two of before in another conversation", len(r.History), r.Branch, r.Thread)
		}
	}
	screen.await(t, `2\r\n[^~]*worker> $`)
	if third := ask("three?"); third.Thread != second.Thread || third.Branch != "" || len(third.History) != 4 {
		t.Errorf("got %d turns in %q, branched from %q, want four in %q", len(third.History), third.Thread, third.Branch, second.Thread)
	}
	screen.await(t, `3\r\n[^~]*worker> $`)
	screen.types(t, "\x04")
	if got := <-code; got != command.ExitDone {
		t.Errorf("got exit code %d, want 0", got)
	}

	code = screen.runs(t, "chat", "worker", "--hub="+at, "--thread="+string(second.Thread))
	screen.await(t, `--thread[^~]*worker> $`)
	screen.types(t, "/branch\r")
	screen.await(t, `in a new conversation[^~]*worker> $`)
	screen.types(t, "four?\r")
	task := nextBatch(t, worker, isAssigned).Task
	if r := task.Request(); len(r.History) != 6 || r.Thread == second.Thread {
		t.Errorf("from a conversation of before: got %d turns in %q, want six in another one", len(r.History), r.Thread)
	}
	reports(t, worker, task.ID(), core.Done{Text: "4"})
	screen.await(t, `4\r\n[^~]*worker> $`)
	screen.types(t, "\x04")
	<-code
}

func TestAskBranchesFromATask(t *testing.T) {
	h, at := served(t)
	worker := joins(t, h, "worker")
	histories := make(chan int, 2)
	go func() {
		for range 2 {
			task := nextBatch(t, worker, isAssigned).Task
			histories <- len(task.Request().History)
			_ = worker.Report(task.ID(), core.Done{Text: "ok"}, nil)
		}
	}()
	for i, args := range [][]string{{"ask", "worker", "one"}, {"ask", "worker", "two", "--branch=last"}} {
		if code, out, stderr := runWith(t, "", append(args, "--hub="+at)...); code != command.ExitDone {
			t.Errorf("%q: got %d, %q and %q, want it done", args, code, out, stderr)
		}
		if got := <-histories; got != 2*i {
			t.Errorf("%q: got %d earlier turns, want %d", args, got, 2*i)
		}
	}
	if code, _, stderr := runWith(t, "", "ask", "worker", "go", "--branch=last", "--thread=t", "--hub="+at); code != command.ExitUsage || !strings.Contains(stderr, "leave out --thread") {
		t.Errorf("with --thread: got %d and %q, want a usage error", code, stderr)
	}
	if _, out, _ := runWith(t, "", "tasks", "last", "--hub="+at); !strings.Contains(out, "BRANCH OF") {
		t.Errorf("got\n%s\nwant where the conversation branched", out)
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
