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
	// refusals is how many connections may be told at a time that there is no
	// room; more are closed without a word.
	refusals = 64
	// farewell is how long such a connection may take to ask and to read that.
	farewell = 500 * time.Millisecond
)

// door is a listener that lets in so many connections at a time.
type door struct {
	net.Listener
	server *Server

	telling chan struct{} // one place for each refusal under way
	closing context.CancelFunc
	closed  context.Context //nolint:containedctx // it is the life of the listener, which ends with Close
	wg      sync.WaitGroup

	mu     sync.Mutex
	inside int
}

// newDoor returns a door before l, with the limits of the server.
func newDoor(l net.Listener, s *Server) *door {
	d := &door{Listener: l, server: s, telling: make(chan struct{}, refusals)}
	d.closed, d.closing = context.WithCancel(context.Background())
	return d
}

// Accept returns the next connection for which there is room.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		switch in, told := d.server.opts.Admit(conn); {
		case in && d.enter():
			return &guest{Conn: conn, leave: sync.OnceFunc(d.leave)}, nil
		case in:
			d.refuse(conn)
			d.server.opts.OnRefused(conn.RemoteAddr())
		case told:
			d.refuse(conn)
		default:
			conn.Close()
		}
	}
}

// Close closes the listener and waits for the refusals under way.
func (d *door) Close() error {
	err := d.Listener.Close()
	d.closing()
	d.wg.Wait()
	return err
}

func (d *door) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inside >= d.server.opts.MaxConnections {
		return false
	}
	d.inside++
	return true
}

func (d *door) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside--
}

// refuse tells conn that there is no room and closes it. Clients do not expect an
// answer before they have asked, nor read one while they still send, so that refuse
// listens first and last, for a moment and elsewhere.
func (d *door) refuse(conn net.Conn) {
	select {
	case d.telling <- struct{}{}:
	default:
		conn.Close()
		return
	}
	d.wg.Go(func() {
		defer func() { <-d.telling }()
		defer conn.Close()
		if d.server.opts.TLS != nil {
			return
		}
		defer context.AfterFunc(d.closed, func() { conn.Close() })()
		conn.SetDeadline(time.Now().Add(farewell))
		head, err := readHead(conn)
		if err != nil {
			return
		}
		if d.always(head) {
			d.answer(conn, head)
			return
		}
		// It is sent away, whether it listens or not.
		_, _ = io.WriteString(conn, noRoom)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, conn)
	})
}

// readHead reads until the head of a request has come, or as much as a short one has.
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

// always reports whether a request is answered although there is no room.
func (d *door) always(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	method, rest, _ := bytes.Cut(line, []byte(" "))
	path, _, _ := bytes.Cut(rest, []byte(" "))
	return (string(method) == http.MethodGet || string(method) == http.MethodHead) && slices.Contains(d.server.opts.Always, string(path))
}

// answer has the server answer one request, whose head has been read, and waits until it
// has closed the connection.
func (d *door) answer(conn net.Conn, head []byte) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	head = slices.Concat(line, []byte("\r\nConnection: close\r\n"), rest)
	one := &lone{Conn: conn, head: bytes.NewReader(head), closed: make(chan struct{})}
	l := &single{Listener: d.Listener, conn: one}
	_ = d.server.http.Serve(l) // it ends with the second Accept
	if l.conn == nil {
		<-one.closed
	}
}

// single is a listener that accepts one connection.
type single struct {
	net.Listener
	conn net.Conn
}

// Accept returns the connection, and then that there are no more.
func (s *single) Accept() (net.Conn, error) {
	conn := s.conn
	if s.conn = nil; conn == nil {
		return nil, io.EOF
	}
	return conn, nil
}

// Close leaves the listener open.
func (s *single) Close() error { return nil }

// lone is a connection of which the head of a request has been read.
type lone struct {
	net.Conn
	head   *bytes.Reader
	once   sync.Once
	closed chan struct{}
}

// Read reads the head once more, and then the connection.
func (l *lone) Read(p []byte) (int, error) {
	if l.head.Len() > 0 {
		return l.head.Read(p)
	}
	return l.Conn.Read(p)
}

// Close closes the connection.
func (l *lone) Close() error {
	defer l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

// guest is a connection that was let in.
type guest struct {
	net.Conn
	leave func()
}

// Close closes the connection and makes room for another.
func (g *guest) Close() error {
	err := g.Conn.Close()
	g.leave()
	return err
}

// CloseWrite ends this side of the connection. net/http does that before it closes
// a connection whose client is still sending, so that the answer arrives.
func (g *guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// noRoom is the answer to a connection for which there is no room. net/http never
// sees that connection.
const noRoom = "HTTP/1.1 503 Service Unavailable\r\n" +
	"Content-Type: application/problem+json\r\n" +
	"Connection: close\r\n" +
	"Retry-After: 1\r\n\r\n" +
	`{"type":"about:blank","title":"Service Unavailable","status":503,` +
	`"detail":"there is no room for another connection; try again later","code":"overloaded"}` + "\n"
