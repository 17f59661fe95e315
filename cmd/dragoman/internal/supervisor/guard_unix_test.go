//go:build unix

package supervisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
)

func TestAGuardKillsWhatIsLeftWhenItsLifelineEnds(t *testing.T) {
	dir := t.TempDir()
	// The second sleeper has a session of its own: only the mark in its environment shows whose
	// it is.
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $! > "+dir+"/group; setsid sh -c 'echo $$ > "+dir+"/session; exec sleep 1000' & wait")
	cmd.Env = append(os.Environ(), "CHILD_OF_DRAGOMAN=the-mark")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	for _, name := range []string{"group", "session"} {
		for end := time.Now().Add(watchdog); ; <-time.After(5 * time.Millisecond) {
			if b, err := os.ReadFile(dir + "/" + name); err == nil && strings.HasSuffix(string(b), "\n") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("no file %s", name)
			}
		}
	}
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	supervisor.RunGuard("the-mark", strings.NewReader(fmt.Sprintf("+%d\nnonsense\n+%d\n-%d\n", cmd.Process.Pid, other.Process.Pid, other.Process.Pid)))
	wantsGone(t, dir+"/group")
	wantsGone(t, dir+"/session")
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process that was removed from the guard: got %v, want it alive", err)
	}
}
