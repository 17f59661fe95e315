//go:build unix

package pi_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/shell"
)

// run runs a command with a reaper.
func run(t *testing.T, line, dir string) (int, shell.Printed) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := shell.NewOutput(func(string, int64) {})
	code, err := shell.Command{Line: line, Dir: dir, Reaper: []string{self, reaperArgument}}.Run(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	return code, out.Close()
}

func TestACommandRunsInItsDirectoryWithoutInput(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	code, got := run(t, `echo out; echo err >&2; pwd; cat; exit 3`, dir)
	text := "out\nerr\n" + dir + "\n"
	if want := (shell.Printed{Text: text, Bytes: int64(len(text)), Lines: 3}); code != 3 || got != want {
		t.Errorf("got exit code %d and %+v, want 3 and %+v", code, got, want)
	}
	if code, _ := run(t, `kill -TERM $$`, dir); code != 143 {
		t.Errorf("a command that a signal ended: got exit code %d, want 143", code)
	}
}

func TestACommandDoesNotInheritSecrets(t *testing.T) {
	t.Setenv("DRAGOMAN_TOKEN", "secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("LC_TIME", "C")
	dir := t.TempDir()
	_, printed := run(t, `env; [ -t 0 ] && echo tty`, dir)
	got := printed.Text
	if strings.Contains(got, "secret") || strings.Contains(got, "tty") {
		t.Errorf("got %q, want no secret and no terminal", got)
	}
	for _, want := range []string{"PATH=", "LC_TIME=C\n", "TERM=dumb\n", "PWD=" + dir + "\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

func TestWithoutAReaperTheProcessGroupIsKilled(t *testing.T) {
	var out strings.Builder
	code, err := shell.Command{Line: `sleep 1000 >/dev/null 2>&1 & echo $!`}.Run(t.Context(), &out)
	if code != 0 || err != nil {
		t.Fatalf("got exit code %d and %v, want 0", code, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	for syscall.Kill(pid, 0) == nil {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if _, rest, ok := strings.Cut(string(state), ") "); err == nil && ok && strings.HasPrefix(rest, "Z") {
			return // a zombie of another parent: it was killed
		}
	}
}

func TestACommandThatCannotRunIsAnError(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if _, err := (shell.Command{Line: "true", Dir: gone}).Run(t.Context(), &strings.Builder{}); err == nil || !strings.HasPrefix(err.Error(), "bash: ") {
		t.Errorf("got %v, want an error with the prefix bash", err)
	}
}

func TestACommandEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	out := shell.NewOutput(func(string, int64) { close(started); cancel() })
	if _, err := (shell.Command{Line: `echo started; sleep 1000`}).Run(ctx, out); err != nil {
		t.Error(err)
	}
	<-started
	if got := out.Close(); got.Text != "started\n" {
		t.Errorf("got %+v, want the text started", got)
	}
}
