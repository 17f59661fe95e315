//go:build unix

package stdio

import (
	"fmt"
	"os"
	"syscall"
)

// Std returns a Conn over our own stdin and stdout. It works on copies of the
// descriptors: Close leaves 0 and 1 open, and a stdout whose reader has gone is
// an error of Send and not the end of the process, as SIGPIPE on descriptor 1
// would be. Nobody else may use them meanwhile.
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

// copyOf returns another descriptor of the same file, which children do not get.
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
