package procgroup_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/procgroup"
)

// waits is the variable that makes the test binary a process that waits for the end of its stdin.
const waits = "PROCGROUP_TEST_WAITS"

func TestMain(m *testing.M) {
	if os.Getenv(waits) != "" {
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	goleak.VerifyTestMain(m)
}

// waiting starts a process that leads a group and waits for the end of its stdin.
func waiting(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), waits+"=1", "GORACE=atexit_sleep_ms=0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	procgroup.Lead(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestALeaderEnds(t *testing.T) {
	for name, end := range map[string]func(*os.Process) error{
		"Terminate": procgroup.Terminate,
		"Kill":      procgroup.Kill,
		"KillID":    func(p *os.Process) error { return procgroup.KillID(p.Pid) },
	} {
		cmd := waiting(t)
		if err := end(cmd.Process); err != nil {
			t.Errorf("%s: got %v, want the process ended", name, err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) {
			t.Errorf("%s: got %v, want a process that was ended", name, err)
		}
		if err := end(cmd.Process); err == nil {
			t.Errorf("%s: got no error for a process that is gone, want one", name)
		}
	}
}
