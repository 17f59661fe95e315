package stdio

import (
	"errors"
	"fmt"
)

// CanListen returns why [Listen] cannot work on this system: Windows has Unix sockets, but no mode
// that keeps other users out.
func CanListen() error {
	return errors.New("on Windows a Unix socket has no mode, so that every user could connect: use a TCP address on 127.0.0.1 instead")
}

// Listen returns an error that wraps that of [CanListen].
func Listen(path string, _ Options) (*Listener, error) {
	return nil, fmt.Errorf("listen on %s: %w", path, CanListen())
}
