package stdio

import "syscall"

// PeerUID returns the effective user of the process at the other end of a Unix socket when it
// connected, as the kernel knows it. It is false for any other connection, and where the system
// does not tell.
func (c *Conn) PeerUID() (uid uint32, ok bool) {
	socket, ok := c.r.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	if err := raw.Control(func(fd uintptr) { uid, ok = peerUID(int(fd)) }); err != nil {
		return 0, false
	}
	return uid, ok
}
