package grpcserver_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// pipes is a listener whose connections are in memory. A test of times runs with it under
// testing/synctest: no busy machine lets them pass.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// connect returns the client's end of a new connection.
func (p *pipes) connect(ctx context.Context, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial connects to the server until the test ends.
func (p *pipes) dial(t testing.TB) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///pipes", grpc.WithContextDialer(p.connect), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// pipedPair is pair in memory.
func pipedPair(t testing.TB) (server, client *stream) {
	t.Helper()
	l := newPipes()
	accepted, release := acceptingOn(t, l, grpcserver.Options{})
	client = openOn(t, l.dial(t))
	server = <-accepted
	t.Cleanup(func() { release(link.Reason{Cause: link.Normal}) })
	return server, client
}
