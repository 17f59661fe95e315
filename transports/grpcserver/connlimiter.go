package grpcserver

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxRefusals is how many calls of a connection may be refused before one is admitted. Then it
// is closed: each refusal costs memory until the deadline that the client chose.
const maxRefusals = 32

// connLimiter is a listener that counts its connections and closes those beyond a limit. It
// does not wrap connections: grpc-go reads a bare TCP connection without keeping a buffer
// for it, but not a wrapped one. Hence connLimiter is not notified when a connection
// ends; it checks all of them when it is full.
//
// Connections of which no call was admitted have a share of their own. If it is used up, the
// oldest of them is closed: a client needs it for a moment only, one that does nothing loses it.
type connLimiter struct {
	net.Listener
	opts *Options
	// share is how many connections may be unproven; 0 if nobody has to authenticate.
	share int

	mu       sync.Mutex
	unproven []*connection // oldest first
	conns    []*connection // the others
	closed   bool
}

// connection is a connection at the server's end.
type connection struct {
	net.Conn
	limiter *connLimiter
	expire  *time.Timer
	proven  atomic.Bool  // a call was admitted
	refused atomic.Int32 // calls
	watches atomic.Int32 // of its health
}

// Accept returns the next connection for which there is room.
func (c *connLimiter) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		room := c.opts.AdmitConn(conn)
		if room && c.admit(conn) {
			return conn, nil
		}
		conn.Close()
		if room {
			c.opts.OnRefused(conn.RemoteAddr())
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
	full := func() bool { return len(c.conns)+len(c.unproven) >= c.opts.MaxConnections }
	if full() || c.share > 0 && len(c.unproven) >= c.share {
		c.sweep()
	}
	if len(c.unproven) > 0 && (full() || len(c.unproven) >= c.share) {
		c.drop(c.unproven[0])
	}
	if full() {
		return false
	}
	one := &connection{Conn: conn, limiter: c}
	if c.share == 0 {
		one.proven.Store(true)
		c.conns = append(c.conns, one)
		return true
	}
	c.unproven = append(c.unproven, one)
	one.expire = time.AfterFunc(c.opts.AuthTimeout, one.expired)
	return true
}

// sweep drops the connections that are closed. Callers hold mu.
func (c *connLimiter) sweep() {
	gone := func(one *connection) bool {
		open := isOpen(one.Conn)
		if !open && one.expire != nil {
			one.expire.Stop()
		}
		return !open
	}
	c.conns, c.unproven = slices.DeleteFunc(c.conns, gone), slices.DeleteFunc(c.unproven, gone)
}

// drop closes an unproven connection. Callers hold mu.
func (c *connLimiter) drop(one *connection) {
	c.unproven = slices.DeleteFunc(c.unproven, func(other *connection) bool { return other == one })
	one.expire.Stop()
	if isOpen(one.Conn) {
		one.Conn.Close()
		c.opts.OnUnauthenticated(one.RemoteAddr())
	}
}

// find returns the connection that was accepted as conn, or nil.
func (c *connLimiter) find(conn net.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range [2][]*connection{c.unproven, c.conns} {
		for _, one := range slices.Backward(list) {
			if one.Conn == conn {
				return one
			}
		}
	}
	return nil
}

// closeAll closes all connections, including those in their handshake, and admits no more.
func (c *connLimiter) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, one := range slices.Concat(c.unproven, c.conns) {
		one.Conn.Close()
		if one.expire != nil {
			one.expire.Stop()
		}
	}
	c.conns, c.unproven = nil, nil
}

// prove moves a connection out of the share of those that have not authenticated.
func (one *connection) prove() {
	if one.proven.Load() || one.limiter == nil {
		return
	}
	c := one.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.unproven, one)
	if at < 0 {
		return // it is being closed, or another call of it was faster
	}
	one.expire.Stop()
	one.proven.Store(true)
	c.unproven = slices.Delete(c.unproven, at, at+1)
	c.conns = append(c.conns, one)
}

// refuse counts a call that was refused.
func (one *connection) refuse() {
	if one.limiter != nil && !one.proven.Load() && one.refused.Add(1) >= maxRefusals {
		one.expired()
	}
}

// expired closes a connection that has not authenticated.
func (one *connection) expired() {
	c := one.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.unproven, one) {
		c.drop(one)
	}
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
