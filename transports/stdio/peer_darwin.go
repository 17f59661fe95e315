package stdio

import "golang.org/x/sys/unix"

// peerUID reads LOCAL_PEERCRED.
func peerUID(fd int) (uid uint32, ok bool) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, false
	}
	return peer.Uid, true
}
