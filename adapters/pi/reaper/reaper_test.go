package reaper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/adapters/pi/reaper"
)

// playsReaper as the first argument makes the test binary a reaper.
const playsReaper = "reap"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == playsReaper {
		os.Exit(reaper.Run(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// begin starts a reaper of a shell script in a directory. What it is given ends the
// life line.
func begin(t *testing.T, dir, script string) (*exec.Cmd, io.Closer, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, playsReaper, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	line, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, line, &out
}

// patience is how long a test waits for what must come: only a failing test does.
const patience = 30 * time.Second

// pidIn waits for the file in which a program wrote its id.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if b, err := os.ReadFile(path); err == nil && bytes.HasSuffix(b, []byte("\n")) {
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
		<-time.After(time.Millisecond)
	}
	t.Fatalf("%s: no id of a process", path)
	return 0
}

// dead waits until there is no such process, or one that only waits to be reaped.
func dead(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(time.Millisecond) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && strings.HasPrefix(rest, "Z") || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
	}
	t.Errorf("process %d: got it alive, want it dead", pid)
}

func TestAReaperEndsAsItsProgramDoes(t *testing.T) {
	for script, want := range map[string]int{"echo said; exit 3": 3, "echo said; kill -TERM $$": 143, "echo said": 0, "echo said; kill 0": 143} {
		cmd, line, out := begin(t, t.TempDir(), script)
		_ = cmd.Wait()
		_ = line.Close()
		if got := cmd.ProcessState.ExitCode(); got != want || out.String() != "said\n" {
			t.Errorf("%s: got %d and %q, want %d and what was said", script, got, out, want)
		}
	}
	if got := reaper.Run(nil); got != 2 {
		t.Errorf("without a program: got %d, want 2", got)
	}
}

func TestWhateverAProgramBeganEndsWithIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what leaves the group escapes here: see the package")
	}
	const waits = ` while [ ! -s child ]; do sleep 0.01; done; wait; sleep 1000`
	const escape = `setsid bash -c '(trap "" TERM HUP; echo $BASHPID > child; exec -a "a) name (" sleep 1000) & wait' & `
	const orphan = `(setsid bash -c 'echo $$ > child; exec sleep 1000' &); `
	for name, tt := range map[string]struct {
		script string
		end    func(cmd *exec.Cmd, line io.Closer) error
	}{
		"the line ends, and it left the group":     {escape + waits, func(_ *exec.Cmd, line io.Closer) error { return line.Close() }},
		"the line ends, and it is an orphan":       {orphan + waits, func(_ *exec.Cmd, line io.Closer) error { return line.Close() }},
		"the program ends, and it left the group":  {escape + `while [ ! -s child ]; do sleep 0.01; done`, nil},
		"the program ends, and it is an orphan":    {orphan + ` while [ ! -s child ]; do sleep 0.01; done`, nil},
		"the program is asked to end by its group": {orphan + ` while [ ! -s child ]; do sleep 0.01; done; kill 0`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd, line, _ := begin(t, dir, tt.script)
			child := pidIn(t, filepath.Join(dir, "child"))
			if tt.end != nil {
				if err := tt.end(cmd, line); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			_ = line.Close()
			dead(t, child)
		})
	}
}

func TestAProgramDiesWithItsReaper(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it does not here: see the package")
	}
	dir := t.TempDir()
	cmd, line, _ := begin(t, dir, `echo $$ > child; exec sleep 1000`)
	child := pidIn(t, filepath.Join(dir, "child"))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = line.Close()
	dead(t, child)
}

// A container may have no /proc: then nobody tells what has left the group.
func TestTheGroupOfAProgramEndsWithTheLineWhereProcessesAreNotTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "-rm", "bash", "-c", `mount -t tmpfs none /proc && exec "$0" reap bash -c 'sleep 1000 & echo $! > child; sleep 1000; true'`, self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	line, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := pidIn(t, filepath.Join(dir, "child"))
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 137 {
		t.Errorf("got %d, want 137", got)
	}
	dead(t, child)
}
