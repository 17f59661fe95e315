//go:build !linux

package stdio

// PeerUID returns false: the user at the other end of a Unix socket is known on Linux only.
func (c *Conn) PeerUID() (uid uint32, ok bool) { return 0, false }
