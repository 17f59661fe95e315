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

// terminate sends SIGTERM to the group of p.
func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// kill sends SIGKILL to the group of p.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// restrict allows only our own user to use the socket fd, if the system can do that before the
// socket is bound.
func restrict(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }
