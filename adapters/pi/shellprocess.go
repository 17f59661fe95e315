package pi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// shellEnvironment are the variables of the hub that a program is given: what it
// takes to find programs, files and words. The rest may be secrets, such as those
// that begin with DRAGOMAN_.
var shellEnvironment = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"}

// straggling is how long a program may take to end that is to end, and its output may
// stay open once it has.
const straggling = 5 * time.Second

// runShell runs a command in a directory until it ends or the context does; then
// everything that it began has ended, however that came. Input is empty; what is
// printed to either output goes to out. It returns the exit code, of a program that a
// signal ended 128 and its number, and an error if it could not run. The reaper is the
// command line that is to run it (package reaper); without one what leaves the group of
// the program escapes.
func runShell(ctx context.Context, reaper []string, dir, command string, out io.Writer) (code int, err error) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		return 0, fmt.Errorf("bash: %w", err)
	}
	argv := append(slices.Clip(reaper), shell, "-c", command)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // that is what it is for
	cmd.Dir = dir
	cmd.Env = environment(os.Environ(), dir)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = straggling
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if len(reaper) > 0 {
		line, err := cmd.StdinPipe()
		if err != nil {
			return 0, fmt.Errorf("bash: %w", err)
		}
		end = line.Close
		cmd.Args[0] = os.Args[0] // by which name people know it
	}
	cmd.Cancel = end
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("bash: %w", err)
	}
	err = cmd.Wait()
	_ = end() // what it left behind, if anything
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return ended.ExitCode(), nil
	case ctx.Err() != nil, errors.Is(err, exec.ErrWaitDelay): // it ended, if not by itself
		return 0, nil
	}
	return 0, err
}

// environment is what a program is given of all there is.
func environment(all []string, dir string) []string {
	given := []string{"TERM=dumb"}
	if dir != "" {
		given = append(given, "PWD="+dir)
	}
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(shellEnvironment, name) || strings.HasPrefix(name, "LC_") {
			given = append(given, v)
		}
	}
	slices.SortFunc(given, cmp.Compare[string])
	return given
}
