package shell

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

	"github.com/dragoman-hub/dragoman/core/procgroup"
)

// inherited are the environment variables that a command gets from this process, besides
// those that begin with LC_ and [procgroup.SystemEnv]. They are what it needs to find programs and files and to
// choose a language. All others may be secrets, such as those that begin with DRAGOMAN_.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"}

// exitGrace bounds how long a killed command may take to end, and how long its output may
// stay open after that.
const exitGrace = 5 * time.Second

// Command is a command to run.
type Command struct {
	// Line is what bash runs.
	Line string
	// Dir is the working directory; "" means that of this process.
	Dir string
	// Reaper is the command line of a reaper (package reaper), which runs bash and then
	// kills everything that bash started. Without it, processes that leave the process
	// group survive; on Windows, which has no groups, all but bash.
	Reaper []string
}

// Run runs the command until it ends or ctx does, and kills the processes that it left
// running. Its stdin is empty; stdout and stderr go to out. Run returns the exit code, or
// 128 plus the signal number if a signal ended the command, and an error if the command
// could not run. If ctx ended the command, the exit code is meaningless.
func (c Command) Run(ctx context.Context, out io.Writer) (exitCode int, err error) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return 0, fmt.Errorf("bash: %w", err)
	}
	argv := append(slices.Clip(c.Reaper), bash, "-c", c.Line)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // running what a client asks for is the purpose
	cmd.Dir = c.Dir
	cmd.Env = environment(os.Environ(), c.Dir)
	cmd.Stdout, cmd.Stderr = out, out
	procgroup.Lead(cmd)
	cmd.WaitDelay = exitGrace
	kill := func() error { return procgroup.Kill(cmd.Process) }
	if len(c.Reaper) > 0 {
		lifeline, err := cmd.StdinPipe() // the reaper kills everything once it is closed
		if err != nil {
			return 0, fmt.Errorf("bash: %w", err)
		}
		kill = lifeline.Close
		cmd.Args[0] = os.Args[0] // so that ps shows the name of this program
	}
	cmd.Cancel = kill
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("bash: %w", err)
	}
	err = cmd.Wait()
	_ = kill() // processes that bash left running
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() { // never on Windows
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	case ctx.Err() != nil, errors.Is(err, exec.ErrWaitDelay): // it ran, and was killed
		return 0, nil
	}
	return 0, err
}

// environment selects from all the variables for a command that runs in dir.
func environment(all []string, dir string) []string {
	env := []string{"TERM=dumb"}
	if dir != "" {
		env = append(env, "PWD="+dir)
	}
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		if procgroup.HasEnv(inherited, name) || procgroup.HasEnv(procgroup.SystemEnv, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, v)
		}
	}
	slices.SortFunc(env, cmp.Compare[string])
	return env
}
