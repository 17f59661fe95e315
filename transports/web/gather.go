package web

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// gathered is what was written to a connection since its answer was flushed last. net/http writes a
// chunk of a stream in three to five pieces, each of which costs a system call and a wake-up of the
// client. It belongs to the goroutine of the connection's handler.
type gathered struct {
	on    bool
	piece *[]byte // nil while it is empty
	err   error   // the first of a write: what follows would stand at a wrong place
}

// pieces are reused: a stream that waits holds none.
var pieces = sync.Pool{New: func() any {
	b := make([]byte, 0, 2*pieceBytes)
	return &b
}}

// Write implements net.Conn. Once pieceBytes are gathered, it sends them.
func (g *limitedConn) Write(p []byte) (int, error) {
	if g.gathered.err != nil {
		return 0, g.gathered.err
	}
	if !g.gathered.on {
		return g.Conn.Write(p)
	}
	if g.gathered.piece == nil {
		g.gathered.piece = pieces.Get().(*[]byte)
	}
	b := g.gathered.piece
	if *b = append(*b, p...); len(*b) < pieceBytes {
		return len(p), nil
	}
	return len(p), g.send()
}

// send sends what was gathered.
func (g *limitedConn) send() error {
	b := g.gathered.piece
	if b == nil {
		return nil
	}
	g.gathered.piece = nil
	var err error
	if _, err = g.Conn.Write(*b); err != nil {
		g.gathered.err = err
	}
	if cap(*b) <= 4*pieceBytes {
		*b = (*b)[:0]
		pieces.Put(b)
	}
	return err
}

// gather makes Write gather until the next call of scatter. A nil limitedConn does nothing.
func (g *limitedConn) gather() {
	if g != nil {
		g.gathered.on = true
	}
}

// scatter sends what was gathered, and lets Write send at once.
func (g *limitedConn) scatter() error {
	if g == nil {
		return nil
	}
	g.gathered.on = false
	return g.send()
}

type connKey struct{}

// withConn puts a plain connection into the context of its requests. That of TLS is not there: it
// also writes when it is closed, which others do.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if one, ok := conn.(*limitedConn); ok {
		ctx = context.WithValue(ctx, connKey{}, one)
	}
	return withVisit(ctx, conn)
}

// connOf returns the connection of a request; nil if it does not gather.
func connOf(r *http.Request) *limitedConn {
	one, _ := r.Context().Value(connKey{}).(*limitedConn)
	return one
}
