package stdio

import (
	"os"
	"os/exec"
	"syscall"
)

// exitWatch waits for the exit of a process without a thread: os.Process.Wait holds one, whose
// stacks would be most of what an idle child costs.
type exitWatch struct{ fd int }

// watchExit prepares a command that is not started.
func watchExit(cmd *exec.Cmd) *exitWatch {
	w := &exitWatch{fd: -1}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.PidFD = &w.fd
	return w
}

// wait waits until the process has exited, or returns at once where the system cannot tell (Linux
// before 5.3). It is called once.
func (w *exitWatch) wait() {
	if w.fd < 0 {
		return
	}
	if err := syscall.SetNonblock(w.fd, true); err != nil { // or the runtime would not poll it
		_ = syscall.Close(w.fd)
		return
	}
	f := os.NewFile(uintptr(w.fd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	polled := false
	_ = conn.Read(func(uintptr) (done bool) { // a pidfd can be read once the process has exited
		done, polled = polled, true
		return done
	})
}
