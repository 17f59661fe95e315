package stdio

import "syscall"

// PeerUID returns the user of the process at the other end of a Unix socket, as the kernel
// knows it (SO_PEERCRED).
func (c *Conn) PeerUID() (uid uint32, ok bool) {
	socket, ok := c.r.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	var peer *syscall.Ucred
	if raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}) != nil || err != nil {
		return 0, false
	}
	return peer.Uid, peer.Pid != 0 // a pipe has no peer
}
