package web_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/transports/web"
)

// lateListener sends a request on its first connection only once it is closed, and returns from Close when the
// server has read it.
type lateListener struct {
	net.Listener
	send func()
	read chan struct{}
	once sync.Once
}

func (l *lateListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &tellsRead{conn, l}, err
}

func (l *lateListener) Close() error {
	l.once.Do(func() {
		l.send()
		<-l.read
	})
	return l.Listener.Close()
}

// tellsRead is a connection that tells when it was read.
type tellsRead struct {
	net.Conn
	of *lateListener
}

func (c *tellsRead) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		close(c.of.read)
	}
	return n, err
}

func TestAServerStopsWhileItAnswersBeyondTheConnectionLimit(t *testing.T) {
	accepted := make(chan struct{})
	s := web.New(web.Options{Always: []string{"/hello"}, Admit: func(net.Conn) (bool, bool) {
		close(accepted)
		return false, true
	}})
	hello(s)
	l := &lateListener{Listener: listen(t), read: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, _ := dial(t, l.Addr().String())
	l.send = func() { io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n") }
	<-accepted
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}
