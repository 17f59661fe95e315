//go:build unix

package pi_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/reaper"
)

// begin starts a reaper that runs a shell script in a directory. Closing the returned
// lifeline makes the reaper kill everything.
func begin(t *testing.T, dir, script string) (*exec.Cmd, io.Closer, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, reaperArgument, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, lifeline, &out
}

func TestAReaperReturnsTheExitCodeOfItsProgram(t *testing.T) {
	for script, want := range map[string]int{"echo text; exit 3": 3, "echo text; kill -TERM $$": 143, "echo text": 0, "echo text; kill 0": 143} {
		cmd, lifeline, out := begin(t, t.TempDir(), script)
		_ = cmd.Wait()
		_ = lifeline.Close()
		if got := cmd.ProcessState.ExitCode(); got != want || out.String() != "text\n" {
			t.Errorf("%s: got %d and %q, want %d and the output text", script, got, out, want)
		}
	}
	if got := reaper.Run(nil); got != 2 {
		t.Errorf("without a program: got %d, want 2", got)
	}
}

func TestAllDescendantsEndWithTheProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes that leave the group survive on this system")
	}
	const waits = ` while [ ! -s child ]; do sleep 0.01; done; wait; sleep 1000`
	const escape = `setsid bash -c '(trap "" TERM HUP; echo $BASHPID > child; exec -a "a) name (" sleep 1000) & wait' & `
	const orphan = `(setsid bash -c 'echo $$ > child; exec sleep 1000' &); `
	for name, tt := range map[string]struct {
		script string
		end    func(cmd *exec.Cmd, lifeline io.Closer) error
	}{
		"stdin ends, left the group":       {escape + waits, func(_ *exec.Cmd, lifeline io.Closer) error { return lifeline.Close() }},
		"stdin ends, orphan":               {orphan + waits, func(_ *exec.Cmd, lifeline io.Closer) error { return lifeline.Close() }},
		"the program ends, left the group": {escape + `while [ ! -s child ]; do sleep 0.01; done`, nil},
		"the program ends, orphan":         {orphan + ` while [ ! -s child ]; do sleep 0.01; done`, nil},
		"the group is signalled, orphan":   {orphan + ` while [ ! -s child ]; do sleep 0.01; done; kill 0`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd, lifeline, _ := begin(t, dir, tt.script)
			child := pidIn(t, filepath.Join(dir, "child"))
			if tt.end != nil {
				if err := tt.end(cmd, lifeline); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			_ = lifeline.Close()
			requireDead(t, child)
		})
	}
}

func TestAProgramDiesWithItsReaper(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a program outlives its reaper on this system")
	}
	dir := t.TempDir()
	cmd, lifeline, _ := begin(t, dir, `echo $$ > child; exec sleep 1000`)
	child := pidIn(t, filepath.Join(dir, "child"))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = lifeline.Close()
	requireDead(t, child)
}

// A container may have no /proc: then only the process group can be found.
func TestWithoutProcTheProcessGroupEndsWithStdin(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("mounting is not permitted: %v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "-rm", "bash", "-c", `mount -t tmpfs none /proc && exec "$0" reap bash -c 'sleep 1000 & echo $! > child; sleep 1000; true'`, self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := pidIn(t, filepath.Join(dir, "child"))
	if err := lifeline.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 137 {
		t.Errorf("got %d, want 137", got)
	}
	requireDead(t, child)
}
