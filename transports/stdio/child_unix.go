//go:build unix

package stdio

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the process the leader of its own group.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pgid = 0
}

// terminate asks the group of p to exit.
func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// kill ends the group of p.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// restrict lets only our own user use the socket fd, where the system can do that
// before it is bound.
func restrict(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }
