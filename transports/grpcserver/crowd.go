package grpcserver

import (
	"net"
	"sync"
	"syscall"
)

// crowd is a listener that counts its connections and closes what is above a
// limit. It hands out the connections as they are: grpc-go reads a bare TCP
// connection without pinning a buffer to it, and a wrapped one not. So nobody
// tells the crowd that a connection has ended; it looks, whenever it is full.
type crowd struct {
	net.Listener
	limit   int
	room    func(net.Conn) bool
	refused func(net.Addr)

	mu    sync.Mutex
	conns []net.Conn
	down  bool
}

// Accept returns the next connection for which there is room.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		room := c.room(conn)
		if room && c.admit(conn) {
			return conn, nil
		}
		conn.Close()
		if room {
			c.refused(conn.RemoteAddr())
		}
	}
}

// admit notes conn if there is room for it.
func (c *crowd) admit(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return false
	}
	if len(c.conns) >= c.limit {
		c.sweep()
	}
	if len(c.conns) >= c.limit {
		return false
	}
	c.conns = append(c.conns, conn)
	return true
}

// sweep forgets the connections that are closed. The caller holds mu.
func (c *crowd) sweep() {
	open := c.conns[:0]
	for _, conn := range c.conns {
		if isOpen(conn) {
			open = append(open, conn)
		}
	}
	clear(c.conns[len(open):])
	c.conns = open
}

// disperse closes every connection, those that are still in their handshake
// included, and admits no more.
func (c *crowd) disperse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = true
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// isOpen reports whether this end of conn has not been closed. What it cannot
// look into counts as open.
func isOpen(conn net.Conn) bool {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	return raw.Control(func(uintptr) {}) == nil
}
