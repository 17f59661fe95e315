//go:build unix

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

// Run runs a program, with the stdout and stderr of this process and an empty stdin, until
// the program or the stdin of this process ends. Then it kills all remaining descendants,
// waits for them, and returns the exit code of the program: 128 plus the signal if a signal
// ended it, 127 if it could not be started. The process must do nothing else.
func Run(argv []string) int {
	if len(argv) == 0 {
		fmt.Fprintln(os.Stderr, "there is no program to run")
		return 2
	}
	// A signal for the program must not end its reaper.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	runtime.LockOSThread() // the program dies with the thread that started it
	adopt()
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec // running a given program is the purpose
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	pid := cmd.Process.Pid
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the error does not matter
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
			killAll(cmd.Process.Pid) // repeated because descendants may start others meanwhile
		}
	}
}

// reap waits for a child to end. It reports false if there is none.
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
