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

// Listener is a Unix socket that waits for connections.
type Listener struct {
	l    *net.UnixListener
	opts Options
}

// Listen listens on a Unix socket at path that only our own user may connect to
// (mode 0600). A socket that a dead process has left there is removed; one that
// somebody answers at, or anything else of that name, is an error and untouched.
func Listen(path string, opts Options) (*Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// The mode is set before there is a name, so that there is no moment at which
	// others could connect. Where the system does not let us, it is set right after.
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

// removeStale removes a socket that nobody listens on any more.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return errors.New("there is a file of that name that is not a socket")
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		return errors.Join(errors.New("another process listens there"), c.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// Accept waits for the next connection. After Close it returns an error that
// wraps [net.ErrClosed].
func (l *Listener) Accept() (*Conn, error) {
	for {
		c, err := l.l.Accept()
		if err != nil {
			return nil, err
		}
		if l.opts.Admit == nil || l.opts.Admit(c) {
			return New(c, c, l.opts), nil
		}
		c.Close()
	}
}

// Path returns where the socket is.
func (l *Listener) Path() string { return l.l.Addr().String() }

// Close ends listening and removes the socket. Connections live on. A second Close
// does nothing.
func (l *Listener) Close() error {
	if err := l.l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Dial connects to the Unix socket at path.
func Dial(ctx context.Context, path string, opts Options) (*Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return New(c, c, opts), nil
}
