package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// delegated gives an agent a scene from the command line and returns the task.
func (s *stage) delegated(t *testing.T, to, act string) string {
	t.Helper()
	code, out, complaint := s.typed(t, "delegate", to, act)
	if code != command.ExitDone {
		t.Fatalf("delegate: got %d and %q, want 0", code, complaint)
	}
	return strings.TrimSpace(out)
}

// typed runs a command line of a client of the stage's hub.
func (s *stage) typed(t *testing.T, args ...string) (code int, out, complaint string) {
	t.Helper()
	return typed(t, append(args, "--hub", "http://"+s.service.Addresses().HTTP)...)
}

// wants runs a command line and holds what came of it against what is wanted: words
// of what it prints, or of its complaint.
func (s *stage) wants(t *testing.T, code int, words string, args ...string) string {
	t.Helper()
	got, out, complaint := s.typed(t, args...)
	said := out
	if code != command.ExitDone {
		said = complaint
	}
	if got != code || !strings.Contains(said, words) {
		t.Errorf("%q: got %d, %q and %q, want %d and %q", args, got, out, complaint, code, words)
	}
	return out
}

func TestAPersonDecidesFromTheCommandLine(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "actor", 2)
	if code, out, complaint := s.typed(t, "approvals"); code != command.ExitDone || out != "" || !strings.Contains(complaint, "nothing waits") {
		t.Errorf("got %d, %q and %q, want nothing to wait", code, out, complaint)
	}
	for _, c := range []struct {
		args []string
		word string
		done bool
	}{
		{[]string{"approve"}, "approved by local", true},
		{[]string{"approve", "--all"}, "and all other tools of the task approved by local", true},
		{[]string{"deny", "--reason", "keep it"}, "denied by local: keep it", false},
	} {
		key := s.key()
		asked := s.delegated(t, "actor", "leave "+key)
		s.await(t, key+" approval_requested")
		for _, want := range []string{asked, key, "actor", "remove", "local"} {
			s.wants(t, command.ExitDone, want, "approvals")
		}
		var list struct{ Approvals []task.PendingApproval }
		if err := json.Unmarshal([]byte(s.wants(t, command.ExitDone, asked, "approvals", "--json")), &list); err != nil || len(list.Approvals) != 1 {
			t.Errorf("got %+v and %v, want one", list, err)
		}
		s.wants(t, command.ExitDone, c.word, append([]string{c.args[0], asked}, c.args[1:]...)...)
		if _, done := s.end(t, key).(core.Done); done != c.done {
			t.Errorf("%q: got it done %t, want %t", c.args, done, c.done)
		}
		s.wants(t, command.ExitFailed, "has ended", "approve", asked, key)
		s.wants(t, command.ExitFailed, "nothing of the task waits", "deny", asked)
	}
	s.wants(t, command.ExitUsage, "TASK is missing: write 'dragoman approve TASK [CALL]", "approve")
}

func TestAnAgentIsToldSomethingFromTheCommandLine(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "listener", 1)
	s.cast(t, parallax.Dialect, "deaf", 1)
	key := s.key()
	task := s.delegated(t, "listener", "listen "+key)
	s.await(t, key+" text")
	s.wants(t, command.ExitUsage, "use immediate, normal or deferred", "inject", task, "x", "--priority", "soon")
	s.wants(t, command.ExitDone, "accepted", "inject", task, "say "+key, "--source", "me", "--priority", "immediate")
	if got := s.await(t, key+" heard"); got != "say "+key {
		t.Errorf("got %q heard, want what was said", got)
	}
	if _, done := s.end(t, key).(core.Done); !done {
		t.Error("got another end, want it done")
	}
	s.wants(t, command.ExitFailed, "has ended", "inject", task, "too late")

	key = s.key()
	task = s.delegated(t, "deaf", "listen "+key)
	s.await(t, key+" text")
	s.wants(t, command.ExitFailed, "agent deaf takes no context while it works", "inject", task, "x")
	s.wants(t, command.ExitDone, "cancelling", "cancel", task, "--reason", "enough")
	if end, ok := s.end(t, key).(core.Cancelled); !ok || end.Reason != "enough" {
		t.Errorf("got the end %+v, want it cancelled: enough", end)
	}
	s.wants(t, command.ExitFailed, "has ended", "cancel", task)
}

// asking runs the program to ask somebody until it prints what is answered first. It
// returns what the program says on stderr.
func (s *stage) asking(t *testing.T, to, act string, begin func(), first string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := program(t, "ask", to, act, "--hub", "http://"+s.service.Addresses().HTTP)
	complaints, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended if all went well
	begin()
	heard := make([]byte, len(first))
	if _, err := io.ReadFull(answer, heard); err != nil || string(heard) != first {
		t.Fatalf("got %q and %v printed, want %q", heard, err, first)
	}
	return cmd, bufio.NewReader(complaints)
}

// interrupted sends an interrupt and reads the next line that the program says.
func interrupted(t *testing.T, cmd *exec.Cmd, said *bufio.Reader, want string) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if line, err := said.ReadString('\n'); !strings.Contains(line, want) {
		t.Errorf("got %q and %v, want %q", line, err, want)
	}
}

// left waits for the end of the program, with the code of an interrupt.
func left(t *testing.T, cmd *exec.Cmd, said *bufio.Reader, want string) {
	t.Helper()
	rest, err := io.ReadAll(said)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the code says it
	if code := cmd.ProcessState.ExitCode(); code != command.ExitInterrupted || !strings.Contains(string(rest), want) {
		t.Errorf("got the exit code %d and %q, want %d and %q", code, rest, command.ExitInterrupted, want)
	}
}

func TestTheFirstInterruptOfAskCancelsAndWaits(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, parallax.Dialect, "actor", 1)
	key := s.key()
	cmd, said := s.asking(t, "actor", "hang "+key, func() {}, firstHalf)
	interrupted(t, cmd, said, "cancelling: interrupt again to leave")
	left(t, cmd, said, "cancelled")
	if end, ok := s.end(t, key).(core.Cancelled); !ok || end.Reason != "interrupted" {
		t.Errorf("got the end %+v, want it cancelled: interrupted", end)
	}
}

func TestTheSecondInterruptOfAskLeaves(t *testing.T) {
	s := newStage(t, nil)
	stubborn := s.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "stubborn"}, Dialect: "test"})
	defer stubborn.Close(nil)
	if err := stubborn.Join(core.Card{ID: "stubborn", Features: core.FeatureCancellation}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	key := s.key()
	var task core.TaskID
	cmd, said := s.asking(t, "stubborn", "hang "+key, func() {
		b, err := stubborn.Next(t.Context())
		if err != nil || b.Task == nil {
			t.Fatalf("got %+v and %v, want the task", b, err)
		}
		task = b.Task.ID()
		if err := stubborn.Report(task, core.Text{Text: "never"}, nil); err != nil {
			t.Fatal(err)
		}
	}, "never")
	interrupted(t, cmd, said, "cancelling: interrupt again to leave")
	interrupted(t, cmd, said, "interrupted")
	left(t, cmd, said, "")
	if err := stubborn.Report(task, core.Done{}, nil); err != nil {
		t.Errorf("got %v, want the task to wait for its agent still", err)
	}
}
