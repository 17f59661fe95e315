package web

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// maxRefusals is how many connections are refused with an answer at a time; others are
	// closed without one.
	maxRefusals = 64
	// refusalTime is how long such a connection may take to send a request and read the answer.
	refusalTime = 500 * time.Millisecond
)

// connLimiter is a listener that limits the number of open connections.
type connLimiter struct {
	net.Listener
	server *Server

	refusing chan struct{} // holds one value for each refusal under way
	closing  context.CancelFunc
	closed   context.Context //nolint:containedctx // the lifetime of the listener, which ends with Close
	wg       sync.WaitGroup

	mu       sync.Mutex
	open     int
	unproven []*limitedConn // oldest first
}

// newConnLimiter returns a connLimiter over l with the limits of the server.
func newConnLimiter(l net.Listener, s *Server) *connLimiter {
	d := &connLimiter{Listener: l, server: s, refusing: make(chan struct{}, maxRefusals)}
	d.closed, d.closing = context.WithCancel(context.Background())
	return d
}

// Accept returns the next connection for which there is room.
func (d *connLimiter) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		switch accepted, answered := d.server.opts.Admit(conn); {
		case accepted:
			if one := d.enter(conn); one != nil {
				return one, nil
			}
			d.refuse(conn)
			d.server.opts.OnRefused(conn.RemoteAddr())
		case answered:
			d.refuse(conn)
		default:
			conn.Close()
		}
	}
}

// Close closes the listener and cuts the refusals under way off, but does not wait for them: net/http closes its
// listeners under a lock that an answer needs too.
func (d *connLimiter) Close() error {
	err := d.Listener.Close()
	d.closing()
	return err
}

// refuse answers conn that there is no room, and closes it. Clients expect no answer before
// their request, and read none while they send. Therefore refuse reads before and after
// the answer, for a bounded time and in a goroutine of its own.
func (d *connLimiter) refuse(conn net.Conn) {
	select {
	case d.refusing <- struct{}{}:
	default:
		conn.Close()
		return
	}
	d.wg.Go(func() {
		defer func() { <-d.refusing }()
		defer conn.Close()
		if d.server.opts.TLS != nil {
			return
		}
		defer context.AfterFunc(d.closed, func() { conn.Close() })()
		conn.SetDeadline(time.Now().Add(refusalTime))
		head, err := readHead(conn)
		if err != nil {
			return
		}
		if d.always(head) {
			d.answer(conn, head)
			return
		}
		// The connection is closed, whether the client reads this or not.
		_, _ = io.WriteString(conn, overloadedResponse)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, conn)
	})
}

// readHead reads the head of a request, or as much as a short head has.
func readHead(conn net.Conn) ([]byte, error) {
	buf, n := make([]byte, 4096), 0
	for n < len(buf) && !bytes.Contains(buf[:n], []byte("\r\n\r\n")) {
		m, err := conn.Read(buf[n:])
		if n += m; err != nil {
			return buf[:n], err
		}
	}
	return buf[:n], nil
}

// always reports whether a request is for one of Options.Always.
func (d *connLimiter) always(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	method, rest, _ := bytes.Cut(line, []byte(" "))
	path, _, _ := bytes.Cut(rest, []byte(" "))
	return (string(method) == http.MethodGet || string(method) == http.MethodHead) && slices.Contains(d.server.opts.Always, string(path))
}

// answer lets the server answer one request, whose head was read, and waits until it has
// closed the connection.
func (d *connLimiter) answer(conn net.Conn, head []byte) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	head = slices.Concat(line, []byte("\r\nConnection: close\r\n"), rest)
	one := &readConn{Conn: conn, head: bytes.NewReader(head), closed: make(chan struct{})}
	l := &oneConn{Listener: d.Listener, conn: one}
	_ = d.server.http.Serve(l) // it returns at the second Accept
	if l.conn == nil {
		<-one.closed
	}
}

// oneConn is a listener that accepts one connection.
type oneConn struct {
	net.Listener
	conn net.Conn
}

// Accept returns the connection, and then an error.
func (s *oneConn) Accept() (net.Conn, error) {
	conn := s.conn
	if s.conn = nil; conn == nil {
		return nil, io.EOF
	}
	return conn, nil
}

// Close leaves the listener open.
func (s *oneConn) Close() error { return nil }

// readConn is a connection of which the head of a request was already read.
type readConn struct {
	net.Conn
	head   *bytes.Reader
	once   sync.Once
	closed chan struct{}
}

// Read returns the head again, and then reads the connection.
func (l *readConn) Read(p []byte) (int, error) {
	if l.head.Len() > 0 {
		return l.head.Read(p)
	}
	return l.Conn.Read(p)
}

// Close closes the connection.
func (l *readConn) Close() error {
	defer l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

// overloadedResponse is the answer to a connection beyond the limit, which net/http never sees.
const overloadedResponse = "HTTP/1.1 503 Service Unavailable\r\n" +
	"Content-Type: application/problem+json\r\n" +
	"Connection: close\r\n" +
	"Retry-After: 1\r\n\r\n" +
	`{"type":"about:blank","title":"Service Unavailable","status":503,` +
	`"detail":"there is no room for another connection; try again later","code":"overloaded"}` + "\n"
