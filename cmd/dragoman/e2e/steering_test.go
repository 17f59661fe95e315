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

func TestApprovalsAreDecidedFromTheCommandLine(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "actor", 2)
	if code, out, stderr := h.run(t, "approvals"); code != command.ExitDone || out != "" || !strings.Contains(stderr, "nothing waits") {
		t.Errorf("got %d, %q and %q, want nothing to wait", code, out, stderr)
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
		key := h.key()
		asked := h.delegate(t, "actor", "leave "+key)
		h.await(t, key+" approval_requested")
		for _, want := range []string{asked, key, "actor", "remove", "local"} {
			h.wantOutput(t, command.ExitDone, want, "approvals")
		}
		var list struct{ Approvals []task.PendingApproval }
		if err := json.Unmarshal([]byte(h.wantOutput(t, command.ExitDone, asked, "approvals", "--json")), &list); err != nil || len(list.Approvals) != 1 {
			t.Errorf("got %+v and %v, want one", list, err)
		}
		h.wantOutput(t, command.ExitDone, c.word, append([]string{c.args[0], asked}, c.args[1:]...)...)
		if _, done := h.end(t, key).(core.Done); done != c.done {
			t.Errorf("%q: got it done %t, want %t", c.args, done, c.done)
		}
		h.wantOutput(t, command.ExitFailed, "has ended", "approve", asked, key)
		h.wantOutput(t, command.ExitFailed, "no approval is waiting", "deny", asked)
	}
	h.wantOutput(t, command.ExitUsage, "TASK is missing: write 'dragoman approve [TASK [CALL]]", "approve")
}

func TestContextIsInjectedFromTheCommandLine(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "listener", 1)
	h.startAgent(t, parallax.Dialect, "deaf", 1)
	key := h.key()
	task := h.delegate(t, "listener", "listen "+key)
	h.await(t, key+" text")
	h.wantOutput(t, command.ExitUsage, "use immediate, normal or deferred", "inject", task, "x", "--priority", "soon")
	h.wantOutput(t, command.ExitDone, "accepted", "inject", task, "say "+key, "--source", "me", "--priority", "immediate")
	if got := h.await(t, key+" injected"); got != "say "+key {
		t.Errorf("got %q injected, want the content", got)
	}
	if _, done := h.end(t, key).(core.Done); !done {
		t.Error("got another end, want it done")
	}
	h.wantOutput(t, command.ExitFailed, "has ended", "inject", task, "too late")

	key = h.key()
	task = h.delegate(t, "deaf", "listen "+key)
	h.await(t, key+" text")
	h.wantOutput(t, command.ExitFailed, "agent deaf takes no context while it works", "inject", task, "x")
	h.wantOutput(t, command.ExitDone, "cancell", "cancel", task, "--reason", "enough") // -ing, or -ed: the agent may be quick
	if end, ok := h.end(t, key).(core.Cancelled); !ok || end.Reason != "enough" {
		t.Errorf("got the end %+v, want it cancelled: enough", end)
	}
	h.wantOutput(t, command.ExitFailed, "has ended", "cancel", task)
}

// startAsk starts the program to ask an agent and returns once it has printed the text first.
func (h *testHub) startAsk(t *testing.T, to, act string, begin func(), first string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := program(t, "ask", to, act, "--hub", h.url())
	stderr, err := cmd.StderrPipe()
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
	received := make([]byte, len(first))
	if _, err := io.ReadFull(answer, received); err != nil || string(received) != first {
		t.Fatalf("got %q and %v printed, want %q", received, err, first)
	}
	return cmd, bufio.NewReader(stderr)
}

// interrupt sends an interrupt and wants a text in the next line that the program prints.
func interrupt(t *testing.T, cmd *exec.Cmd, printed *bufio.Reader, want string) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if line, err := printed.ReadString('\n'); !strings.Contains(line, want) {
		t.Errorf("got %q and %v, want %q", line, err, want)
	}
}

// wantInterrupted waits for the program to end with the exit code of an interrupt.
func wantInterrupted(t *testing.T, cmd *exec.Cmd, printed *bufio.Reader, want string) {
	t.Helper()
	rest, err := io.ReadAll(printed)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is checked
	if code := cmd.ProcessState.ExitCode(); code != command.ExitInterrupted || !strings.Contains(string(rest), want) {
		t.Errorf("got the exit code %d and %q, want %d and %q", code, rest, command.ExitInterrupted, want)
	}
}

func TestTheFirstInterruptOfAskCancelsAndWaits(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, parallax.Dialect, "actor", 1)
	key := h.key()
	cmd, printed := h.startAsk(t, "actor", "hang "+key, func() {}, firstHalf)
	interrupt(t, cmd, printed, "cancelling: interrupt again to leave")
	wantInterrupted(t, cmd, printed, "cancelled")
	if end, ok := h.end(t, key).(core.Cancelled); !ok || end.Reason != "interrupted" {
		t.Errorf("got the end %+v, want it cancelled: interrupted", end)
	}
}

func TestTheSecondInterruptOfAskLeaves(t *testing.T) {
	h := newTestHub(t, nil)
	stubborn := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "stubborn"}, Dialect: "test"})
	defer stubborn.Close(nil)
	if err := stubborn.Join(core.Card{ID: "stubborn", Features: core.FeatureCancellation}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	key := h.key()
	var task core.TaskID
	cmd, printed := h.startAsk(t, "stubborn", "hang "+key, func() {
		b, err := stubborn.Next(t.Context())
		if err != nil || b.Task == nil {
			t.Fatalf("got %+v and %v, want the task", b, err)
		}
		task = b.Task.ID()
		if err := stubborn.Report(task, core.Text{Text: "never"}, nil); err != nil {
			t.Fatal(err)
		}
	}, "never")
	interrupt(t, cmd, printed, "cancelling: interrupt again to leave")
	interrupt(t, cmd, printed, "interrupted")
	wantInterrupted(t, cmd, printed, "")
	if err := stubborn.Report(task, core.Done{}, nil); err != nil {
		t.Errorf("got %v, want the task to wait for its agent still", err)
	}
}
