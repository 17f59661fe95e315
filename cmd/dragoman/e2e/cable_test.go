package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
)

// cable is a TCP connection that a test can cut: what connects to its address is
// passed on to the target and back.
type cable struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// lay lays a cable to a target. It is taken up when the test ends.
func lay(t testing.TB, target string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	c.group.Go(c.accept)
	t.Cleanup(func() {
		l.Close()
		c.cut()
		c.group.Wait()
	})
	return c
}

func (c *cable) addr() string { return c.listener.Addr().String() }

func (c *cable) accept() {
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
		c.mu.Unlock()
		c.group.Go(func() { c.carry(near, far) })
	}
}

// carry passes bytes both ways until both have ended.
func (c *cable) carry(near, far net.Conn) {
	var back sync.WaitGroup
	back.Go(func() { pass(near, far) })
	pass(far, near)
	back.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range []net.Conn{near, far} {
		conn.Close()
		delete(c.conns, conn)
	}
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // however it ends, the other side is told
	_ = to.(*net.TCPConn).CloseWrite()
}

// cut resets every connection at both ends, as when a machine loses its power.
// New ones may be made.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}
