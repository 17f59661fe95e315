//go:build unix

package stdio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// CanListen returns why [Listen] cannot work on this system; nil if it can.
func CanListen() error { return nil }

// Listen listens on a Unix socket at path to which only our own user may connect (mode 0600).
// It removes a socket that a dead process has left. A socket in use, or any other file at
// path, is an error and stays.
func Listen(path string, opts Options) (*Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// The mode is set before the socket has a name, so that others can never connect. If
	// the system does not allow that, it is set right after.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(restrict)
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), l.Close())
	}
	return &Listener{l: l.(*net.UnixListener), opts: opts}, nil
}

// removeStale removes a socket without a listener.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return errors.New("a file of that name exists and is not a socket")
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		return errors.Join(errors.New("another process listens on it"), c.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// restrict allows only our own user to use the socket fd, if the system can do that before the
// socket is bound.
func restrict(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }
