package ws_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen serves WebSockets and passes each connection to the test.
func listen(tb testing.TB, opts ws.AcceptOptions) (url string, accepted <-chan *ws.Conn) {
	conns := make(chan *ws.Conn, 16)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := ws.Accept(w, r, opts); err == nil {
			conns <- c
		}
	}))
	tb.Cleanup(srv.Close)
	return "ws" + strings.TrimPrefix(srv.URL, "http"), conns
}

// pair returns both ends of one connection.
func pair(tb testing.TB, accept ws.AcceptOptions, dial ws.DialOptions) (server, client *ws.Conn) {
	tb.Helper()
	url, conns := listen(tb, accept)
	client, err := ws.Dial(tb.Context(), url, dial)
	if err != nil {
		tb.Fatal(err)
	}
	server = <-conns
	tb.Cleanup(func() {
		_ = client.Close(link.Reason{Cause: link.PeerGone})
		_ = server.Close(link.Reason{Cause: link.PeerGone})
	})
	return server, client
}

// raw is a client that sends and receives single frames.
type raw struct {
	tb testing.TB
	net.Conn
	r *bufio.Reader
}

// The opcodes of RFC 6455, with the bit that ends a message.
const (
	text   = 0x81
	part   = 0x01 // the beginning of a text message
	rest   = 0x80 // the end of one
	binar  = 0x82
	closed = 0x88
	ping   = 0x89
	pong   = 0x8A
)

// rawPair returns a connection whose client is raw.
func rawPair(tb testing.TB, accept ws.AcceptOptions) (*ws.Conn, *raw) {
	tb.Helper()
	url, conns := listen(tb, accept)
	r := rawDial(tb, url)
	server := <-conns
	tb.Cleanup(func() { _ = server.Close(link.Reason{Cause: link.PeerGone}) })
	return server, r
}

// pipedPair is rawPair in memory, where nobody takes what the client does not read. It works under
// testing/synctest.
func pipedPair(t *testing.T) (*ws.Conn, *raw) {
	t.Helper()
	conns := make(chan *ws.Conn, 1)
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := ws.Accept(w, r, ws.AcceptOptions{}); err == nil {
			conns <- c
		}
	})}
	client, server := net.Pipe()
	l := &onePipe{conn: make(chan net.Conn, 1)}
	l.conn <- server
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-served })
	r := rawOn(t, client, "hub")
	c := <-conns
	t.Cleanup(func() { _ = c.Close(link.Reason{Cause: link.PeerGone}) })
	return c, r
}

// onePipe is a listener of one connection.
type onePipe struct {
	conn chan net.Conn
	once sync.Once
}

// Accept implements [net.Listener].
func (l *onePipe) Accept() (net.Conn, error) {
	if c, ok := <-l.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (l *onePipe) Close() error {
	l.once.Do(func() { close(l.conn) })
	return nil
}

// Addr implements [net.Listener].
func (*onePipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// rawDial connects, and sends the frames along with its request.
func rawDial(tb testing.TB, url string, early ...[]byte) *raw {
	tb.Helper()
	host := strings.TrimPrefix(url, "ws://")
	c, err := net.Dial("tcp", host)
	if err != nil {
		tb.Fatal(err)
	}
	return rawOn(tb, c, host, early...)
}

// rawOn is rawDial on a connection.
func rawOn(tb testing.TB, c net.Conn, host string, early ...[]byte) *raw {
	tb.Helper()
	tb.Cleanup(func() { _ = c.Close() })
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"+
		string(bytes.Join(early, nil)))
	br := bufio.NewReaderSize(c, 1<<10)
	resp, err := http.ReadResponse(br, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		tb.Fatalf("handshake: got %v %v, want 101", resp, err)
	}
	_ = resp.Body.Close()
	return &raw{tb: tb, Conn: c, r: br}
}

// frame returns a frame as a client sends it, masked with zeros.
func frame(op byte, payload string) []byte {
	b := []byte{op}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

func (r *raw) send(frames ...[]byte) {
	r.tb.Helper()
	for _, f := range frames {
		if _, err := r.Write(f); err != nil {
			r.tb.Error(err)
		}
	}
}

// next returns the next frame that the server sends.
func (r *raw) next() (op byte, payload string) {
	r.tb.Helper()
	op, payload, err := r.read()
	if err != nil {
		r.tb.Error(err)
	}
	return op, payload
}

// nextOrEnd is next for a connection that may end.
func (r *raw) nextOrEnd() (op byte, payload string) {
	op, payload, err := r.read()
	if err != nil {
		return 0, ""
	}
	return op, payload
}

func (r *raw) read() (op byte, payload string, err error) {
	var h [10]byte
	if _, err := io.ReadFull(r.r, h[:2]); err != nil {
		return 0, "", err
	}
	op = h[0]
	n := uint64(h[1])
	switch n {
	case 126:
		_, _ = io.ReadFull(r.r, h[:2])
		n = uint64(binary.BigEndian.Uint16(h[:]))
	case 127:
		_, _ = io.ReadFull(r.r, h[:8])
		n = binary.BigEndian.Uint64(h[:])
	}
	p := make([]byte, n)
	_, err = io.ReadFull(r.r, p)
	return op, string(p), err
}

// closeWith returns a close frame.
func closeWith(code uint16, why string) []byte {
	return frame(closed, string(binary.BigEndian.AppendUint16(nil, code))+why)
}

// receive returns the next message as a string.
func receive(c *ws.Conn) (string, error) {
	m, err := c.Receive(context.Background())
	return string(m), err
}

func reasonOf(err error) link.Reason {
	var r *link.Reason
	if errors.As(err, &r) {
		return *r
	}
	return link.Reason{}
}

func rejectOf(err error) link.Reject {
	var r *link.Reject
	if errors.As(err, &r) {
		return *r
	}
	return link.Reject{}
}
