package stdio

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"
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
	_ = conn.Read(func(fd uintptr) (done bool) { return exited(int32(fd)) })
}

// exited reports whether the process of a pidfd has exited: then it can be read. The runtime may
// have seen that before it was asked to wait, and would not tell again.
func exited(fd int32) bool {
	const readable = 1 // POLLIN
	poll := struct {
		fd               int32
		events, returned int16
	}{fd: fd, events: readable}
	var atOnce syscall.Timespec
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, uintptr(unsafe.Pointer(&atOnce)), 0, 0, 0)
	return errno != 0 && errno != syscall.EINTR || n > 0
}
