package firstprocess

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run runs the program with the arguments of this process as a child, if this is process 1, and returns its exit code:
// 128 and the number of a signal that has ended it. ran is false for any other process.
func Run() (code int, ran bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	signals := make(chan os.Signal, 64) // before the child, whose end is told by one
	signal.Notify(signals)
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	terminal := isTerminal(os.Stdin)
	program, err := os.StartProcess(self, os.Args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		// A terminal gives Ctrl-C to its foreground group: to the program alone, or it would come twice.
		Sys: &syscall.SysProcAttr{Setpgid: true, Foreground: terminal, Ctty: int(os.Stdin.Fd())},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "dragoman: the program cannot run as a child of process 1: %s\n", err)
		return 1, true
	}
	for {
		if status, ended := reap(program.Pid); ended {
			return exitCode(status), true
		}
		if s := (<-signals).(syscall.Signal); passesOn(s) {
			_ = unix.Kill(program.Pid, s) // it may have ended
		}
	}
}

// reap waits for every process that has ended, and returns the status of the program if that is one of them.
func reap(program int) (status unix.WaitStatus, ended bool) {
	for {
		var s unix.WaitStatus
		pid, err := unix.Wait4(-1, &s, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
		case pid <= 0:
			return status, ended
		case pid == program:
			status, ended = s, true
		}
	}
}

// passesOn reports whether a signal is for the program. The others are for this process: that a child has ended, and
// those of the Go runtime.
func passesOn(s syscall.Signal) bool {
	return s != syscall.SIGCHLD && s != syscall.SIGURG && s != syscall.SIGPIPE
}

// exitCode is the exit code of a program, as a shell has it.
func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		const signalled = 128
		return signalled + int(s.Signal())
	}
	return s.ExitStatus()
}

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
