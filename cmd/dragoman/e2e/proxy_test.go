package e2e

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy is a TCP proxy whose connections a test can reset.
type proxy struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	refusing bool
	bytes    atomic.Int64 // that went either way
}

// newProxy starts a proxy to the target. It is closed when the test ends.
func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	c.group.Go(c.accept)
	t.Cleanup(func() {
		l.Close()
		c.cut()
		c.group.Wait()
	})
	return c
}

func (c *proxy) addr() string { return c.listener.Addr().String() }

func (c *proxy) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.target)
		if err != nil {
			near.Close()
			continue
		}
		c.mu.Lock()
		c.conns[near], c.conns[far] = struct{}{}, struct{}{}
		if c.refusing {
			near.Close()
			far.Close()
		}
		c.mu.Unlock()
		c.group.Go(func() { c.pipe(near, far) })
	}
}

// pipe copies bytes in both directions until both have ended.
func (c *proxy) pipe(near, far net.Conn) {
	var back sync.WaitGroup
	back.Go(func() { c.copyAll(near, far) })
	c.copyAll(far, near)
	back.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range []net.Conn{near, far} {
		conn.Close()
		delete(c.conns, conn)
	}
}

func (c *proxy) copyAll(to, from net.Conn) {
	_, _ = io.Copy(io.MultiWriter(to, (*counter)(&c.bytes)), from) // the other side is closed, however this ends
	_ = to.(*net.TCPConn).CloseWrite()
}

// counter counts the bytes that are written.
type counter atomic.Int64

func (c *counter) Write(p []byte) (int, error) {
	(*atomic.Int64)(c).Add(int64(len(p)))
	return len(p), nil
}

// cut resets every connection at both ends, as a power failure would. New ones may be made.
func (c *proxy) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}

// refuse cuts all connections and closes new ones at once, until it is called with false.
func (c *proxy) refuse(yes bool) {
	c.mu.Lock()
	c.refusing = yes
	c.mu.Unlock()
	if yes {
		c.cut()
	}
}
