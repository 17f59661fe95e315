//go:build unix

package stdio

import (
	"fmt"
	"os"
	"syscall"
)

// Std returns a Conn over stdin and stdout of this process. It uses copies of the descriptors:
// Close leaves 0 and 1 open, and if the reader of stdout has gone, Send returns an error,
// where descriptor 1 would end the process with SIGPIPE. Nothing else may use them meanwhile.
func Std(opts Options) (*Conn, error) {
	in, err := copyOf(0, "stdin")
	if err != nil {
		return nil, err
	}
	out, err := copyOf(1, "stdout")
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	return Files(in, out, opts), nil
}

// copyOf returns a copy of a descriptor, which child processes do not inherit.
func copyOf(fd int, name string) (*os.File, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	n, err := syscall.Dup(fd)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	syscall.CloseOnExec(n)
	return os.NewFile(uintptr(n), name), nil
}
