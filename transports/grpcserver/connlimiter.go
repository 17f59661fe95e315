package grpcserver

import (
	"net"
	"sync"
	"syscall"
)

// connLimiter is a listener that counts its connections and closes those beyond a limit. It
// does not wrap connections: grpc-go reads a bare TCP connection without keeping a buffer
// for it, but not a wrapped one. Hence connLimiter is not notified when a connection
// ends; it checks all of them when it is full.
type connLimiter struct {
	net.Listener
	limit   int
	room    func(net.Conn) bool
	refused func(net.Addr)

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// Accept returns the next connection for which there is room.
func (c *connLimiter) Accept() (net.Conn, error) {
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

// admit counts conn if there is room for it.
func (c *connLimiter) admit(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
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

// sweep drops the connections that are closed. Callers hold mu.
func (c *connLimiter) sweep() {
	open := c.conns[:0]
	for _, conn := range c.conns {
		if isOpen(conn) {
			open = append(open, conn)
		}
	}
	clear(c.conns[len(open):])
	c.conns = open
}

// closeAll closes all connections, including those in their handshake, and admits no more.
func (c *connLimiter) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// isOpen reports whether this end of conn is open. A connection that it cannot examine
// counts as open.
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
