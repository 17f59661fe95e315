package web

import (
	"context"
	"io"
	"net"
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
	limit   int
	polite  bool // say 503 before closing
	refused func(net.Addr)

	telling chan struct{} // one place for each refusal under way
	closing context.CancelFunc
	closed  context.Context //nolint:containedctx // it is the life of the listener, which ends with Close
	wg      sync.WaitGroup

	mu     sync.Mutex
	inside int
}

// newDoor returns a door before l.
func newDoor(l net.Listener, limit int, polite bool, refused func(net.Addr)) *door {
	d := &door{Listener: l, limit: limit, polite: polite, refused: refused, telling: make(chan struct{}, refusals)}
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
		if d.enter() {
			return &guest{Conn: conn, leave: sync.OnceFunc(d.leave)}, nil
		}
		d.refuse(conn)
		d.refused(conn.RemoteAddr())
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
	if d.inside >= d.limit {
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
		if !d.polite {
			return
		}
		defer context.AfterFunc(d.closed, func() { conn.Close() })()
		conn.SetDeadline(time.Now().Add(farewell))
		if _, err := conn.Read(make([]byte, 1024)); err != nil {
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
