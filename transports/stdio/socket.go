package stdio

import (
	"errors"
	"net"
)

// Listener is a Unix socket that accepts connections.
type Listener struct {
	l    *net.UnixListener
	opts Options
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

// Path returns the path of the socket.
func (l *Listener) Path() string { return l.l.Addr().String() }

// Close stops listening and removes the socket. Connections stay open. A second Close has no
// effect.
func (l *Listener) Close() error {
	if err := l.l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
