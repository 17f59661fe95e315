package reaper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

// Run runs a program with this process's output and without input, until it ends or
// the input of this process does. Then it kills what is left of everything that the
// program began, waits for that, and returns the exit code of the program: of one that
// a signal ended 128 and its number, of one that could not be started 127. It is for a
// process that does nothing else.
func Run(argv []string) int {
	if len(argv) == 0 {
		fmt.Fprintln(os.Stderr, "there is no program to run")
		return 2
	}
	// What is meant for the program does not end its reaper.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	runtime.LockOSThread() // the program dies with the thread that began it
	adopt()
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec // that is what it is for
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	pid := cmd.Process.Pid
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends
		killAll(pid)
	}()
	code := 0
	for {
		ended, status, ok := reap()
		if !ok {
			return code
		}
		if ended == pid {
			code = codeOf(status)
			pid = 0
		}
		if pid == 0 {
			killAll(cmd.Process.Pid) // again each time: they may have begun others meanwhile
		}
	}
}

// reap waits for a child to end. It reports false when there is none.
func reap() (pid int, status syscall.WaitStatus, ok bool) {
	for {
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return pid, status, err == nil
		}
	}
}

func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
