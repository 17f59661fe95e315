package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// exampleAgent compiles the agent of the documentation.
func exampleAgent(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "covenagent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../../docs/examples/covenagent")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: got %v, want the example to compile\n%s", err, out)
	}
	return path
}

func TestTheExampleAgentJoinsAnswersAndStops(t *testing.T) {
	h := newTestHub(t, nil)
	path := exampleAgent(t)
	r := connectREST(t, h)
	defer r.leave()

	quick := exec.Command(path, "-hub", h.service.Addresses().GRPC, "-id", "quick", "-pause", "1ms")
	var printed strings.Builder
	quick.Stderr = &printed
	start(t, quick)
	h.await(t, "joined quick")
	key := h.key()
	if got := r.begin(query{to: "quick", content: "good " + key + " to you"}).wait(t); got.End != "done" || got.Text != "GOOD "+strings.ToUpper(key)+" TO YOU" {
		t.Errorf("got %+v, want done in capitals", got)
	}

	twin := exec.Command(path, "-hub", h.service.Addresses().GRPC, "-id", "quick")
	if out, err := twin.CombinedOutput(); err == nil || !strings.Contains(string(out), "agent quick already registered; try -id quick-1") {
		t.Errorf("an agent of the same id: got %v and %q, want it refused with a free id", err, out)
	}

	slow := exec.Command(path, "-hub", h.service.Addresses().GRPC, "-id", "slow", "-pause", time.Hour.String())
	start(t, slow)
	h.await(t, "joined slow")
	key = h.key()
	x := r.begin(query{to: "slow", content: "good " + key})
	h.await(t, key+" text")
	if err := x.cancel(t.Context(), "user_requested"); err != nil {
		t.Fatal(err)
	}
	if got := x.wait(t); got.End != "cancelled" || got.Message != "user_requested" || got.Text != "GOOD " {
		t.Errorf("got %+v, want it cancelled after the first word, with the reason", got)
	}

	if err := quick.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := quick.Wait(); err != nil {
		t.Errorf("an interrupt: got %v, want exit code 0\n%s", err, &printed)
	}
	h.await(t, "left quick")
	if err := h.service.Hub().Close(t.Context(), "maintenance"); err != nil {
		t.Fatal(err)
	}
	if err := slow.Wait(); err != nil {
		t.Errorf("a hub that stops: got %v, want the agent to leave in good order", err)
	}
}

// start starts a process, which is killed when the test ends.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // it may just have ended
			_ = cmd.Wait()
		}
	})
}
