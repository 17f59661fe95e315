package connlimit

import (
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// answerTime is how long a connection whose time is over may take to read its last answer.
const answerTime = time.Second

// Limiter counts connections. Its fields may not be changed once it is used. It is safe for concurrent use.
type Limiter struct {
	// Max is the maximum number of open connections.
	Max int
	// MaxUnproven is how many of them may be unproven; 0 if nobody has to authenticate.
	MaxUnproven int
	// ProveTime is how long a connection may be unproven.
	ProveTime time.Duration
	// OnUnproven, if set, is called for each connection that is closed because it has not authenticated. It must not wait.
	OnUnproven func(remote net.Addr)

	mu       sync.Mutex
	open     map[*Conn]struct{}
	unproven []*Conn // of these, oldest first
}

// Conn is a connection that counts until it is closed. Its methods are safe for concurrent use.
type Conn struct {
	net.Conn
	limiter *Limiter
	expire  *time.Timer // nil if nobody has to authenticate

	// Guarded by limiter.mu.
	proven  bool
	serving bool // a request runs
	overdue bool // its time was over meanwhile
}

// Enter counts a connection, and returns nil if there is no room for it. The Conn, or what is in it, is the caller's to close.
// It closes the oldest unproven connection that serves no request where that makes room.
func (l *Limiter) Enter(conn net.Conn) *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isFull() || l.isCrowded() {
		l.sweep()
	}
	if len(l.unproven) > 0 && (l.isFull() || l.isCrowded()) {
		l.drop(l.unproven[max(0, slices.IndexFunc(l.unproven, func(c *Conn) bool { return !c.serving }))])
	}
	if l.isFull() {
		return nil
	}
	c := &Conn{Conn: conn, limiter: l, proven: l.MaxUnproven == 0}
	if l.open == nil {
		l.open = map[*Conn]struct{}{}
	}
	l.open[c] = struct{}{}
	if !c.proven {
		l.unproven = append(l.unproven, c)
		c.expire = time.AfterFunc(l.ProveTime, c.Expire)
	}
	return c
}

// isFull and the methods below it are called with mu held.
func (l *Limiter) isFull() bool    { return len(l.open) >= l.Max }
func (l *Limiter) isCrowded() bool { return l.MaxUnproven > 0 && len(l.unproven) >= l.MaxUnproven }

// sweep forgets the connections that were closed past their Conn.
func (l *Limiter) sweep() {
	for c := range l.open {
		if !isOpen(c.Conn) {
			l.forget(c)
		}
	}
}

// drop closes an unproven connection.
func (l *Limiter) drop(c *Conn) {
	l.forget(c)
	if isOpen(c.Conn) {
		_ = c.Conn.Close()
		if l.OnUnproven != nil {
			l.OnUnproven(c.RemoteAddr())
		}
	}
}

// forget ends the count of a connection.
func (l *Limiter) forget(c *Conn) {
	delete(l.open, c)
	l.free(c)
}

// free takes a connection out of those that are unproven.
func (l *Limiter) free(c *Conn) {
	if at := slices.Index(l.unproven, c); at >= 0 {
		l.unproven = slices.Delete(l.unproven, at, at+1)
		c.expire.Stop()
	}
}

// CloseAll closes all connections, and lets no others enter.
func (l *Limiter) CloseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Max = 0
	for c := range l.open {
		l.forget(c)
		_ = c.Conn.Close()
	}
}

// Prove notes that the connection has authenticated.
func (c *Conn) Prove() {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	if !c.proven && slices.Contains(c.limiter.unproven, c) {
		c.limiter.free(c)
		c.proven = true
	}
}

// IsProven reports whether the connection has authenticated, or did not have to.
func (c *Conn) IsProven() bool {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	return c.proven
}

// Serve notes that a request of the connection begins or ends. It is not closed in between.
func (c *Conn) Serve(now bool) {
	if c.expire == nil {
		return
	}
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	if c.serving = now; !now && c.overdue {
		c.overdue = false
		c.expire.Reset(answerTime)
	}
}

// Expire closes the connection unless it has authenticated; if a request runs, after it.
func (c *Conn) Expire() {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	switch {
	case !slices.Contains(c.limiter.unproven, c):
	case c.serving:
		c.overdue = true
	default:
		c.limiter.drop(c)
	}
}

// Close closes the connection, so that another may enter.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.limiter.forget(c)
	return err
}

// CloseWrite half-closes the connection. net/http calls it before it closes a connection
// whose client is still sending, so that the answer arrives.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// isOpen reports whether this end of conn is open. A connection that it cannot examine
// counts as open.
func isOpen(conn net.Conn) bool {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	return err == nil && raw.Control(func(uintptr) {}) == nil
}
