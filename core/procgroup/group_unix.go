//go:build unix

package procgroup

import (
	"os"
	"os/exec"
	"syscall"
)

// Lead makes the process of a command that is not started the leader of a group of its own: a
// signal for our group, such as that of an interrupt at the terminal, is not for it.
func Lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pgid = 0
}

// Terminate asks the group that p leads to end, by SIGTERM.
func Terminate(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGTERM) }

// Kill ends the group that p leads, by SIGKILL. Those that p has left are found even after it was
// waited for.
func Kill(p *os.Process) error { return KillID(p.Pid) }

// KillID is Kill for the leader with a process id. Its caller knows that the id is still that of
// the leader, or of the group that it has left.
func KillID(id int) error { return syscall.Kill(-id, syscall.SIGKILL) }

// SystemEnv are the variables without which programs of this system do not work: none.
var SystemEnv []string

// SameEnv reports whether two names are those of one variable.
func SameEnv(a, b string) bool { return a == b }
