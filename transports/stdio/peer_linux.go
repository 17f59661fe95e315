package stdio

import "syscall"

// nobody is the user of a socket without a peer, such as one of TCP.
const nobody = ^uint32(0)

// peerUID reads SO_PEERCRED. The process id says nothing: it is 0 for a peer in another
// container.
func peerUID(fd int) (uid uint32, ok bool) {
	peer, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil || peer.Uid == nobody {
		return 0, false
	}
	return peer.Uid, true
}
