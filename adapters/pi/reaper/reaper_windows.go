package reaper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"

	"github.com/dragoman-hub/dragoman/core/procgroup"
)

// Run runs a program, with the stdout and stderr of this process and an empty stdin, until
// the program or the stdin of this process ends. Then it kills the program, and returns its
// exit code; 127 if it could not be started. What the program has started goes on, since
// Windows has no process groups. The process must do nothing else.
func Run(argv []string) int {
	if len(argv) == 0 {
		fmt.Fprintln(os.Stderr, "there is no program to run")
		return 2
	}
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // an interrupt at the console must not end the reaper
	cmd := exec.Command(argv[0], argv[1:]...)            //nolint:gosec // running a given program is the purpose
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	procgroup.Lead(cmd)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the error does not matter
		_ = procgroup.Kill(cmd.Process)      // it may have ended
	}()
	var exit *exec.ExitError
	switch err := cmd.Wait(); {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	return 0
}
