package coretest

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"

	"github.com/dragoman-hub/dragoman/core/link"
)

// End is one end of a [Pipe]. It is a [link.Conn] and a [link.Pinger].
//
// Messages that were sent before the close are still received. Then Receive returns io.EOF
// if the peer closed as Normal or ShuttingDown, io.ErrUnexpectedEOF if it closed as
// PeerGone, and else its *[link.Reason]. A ping is answered only while the other end is in
// Receive.
type End[In, Out any] struct {
	in   <-chan In
	out  chan<- Out
	self *side
	peer *side
}

// side is the state of one end that the other sees.
type side struct {
	once   sync.Once
	closed chan struct{}
	reason link.Reason
	pings  chan chan<- struct{}
}

// Pipe returns the two ends of a connection in memory. The first end receives A and sends B,
// the second the reverse. Each direction buffers that many messages; with 0, Send waits for
// Receive.
func Pipe[A, B any](messages int) (*End[A, B], *End[B, A]) {
	as, bs := make(chan A, messages), make(chan B, messages)
	x, y := newSide(), newSide()
	return &End[A, B]{in: as, out: bs, self: x, peer: y}, &End[B, A]{in: bs, out: as, self: y, peer: x}
}

func newSide() *side {
	return &side{closed: make(chan struct{}), pings: make(chan chan<- struct{})}
}

// Receive implements [link.Conn].
func (e *End[In, Out]) Receive(ctx context.Context) (In, error) {
	var none In
	for {
		if isClosed(e.self.closed) {
			return none, net.ErrClosed
		}
		select {
		case m := <-e.in:
			return m, nil
		default:
		}
		select {
		case m := <-e.in:
			return m, nil
		case pong := <-e.self.pings:
			close(pong)
		case <-e.self.closed:
			return none, net.ErrClosed
		case <-e.peer.closed:
			select {
			case m := <-e.in:
				return m, nil
			default:
				return none, e.peer.end()
			}
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// Send implements [link.Conn]. Bytes are copied, as every transport does.
func (e *End[In, Out]) Send(ctx context.Context, m Out) error {
	if b, ok := any(m).([]byte); ok {
		m, _ = any(bytes.Clone(b)).(Out)
	}
	if isClosed(e.self.closed) {
		return net.ErrClosed
	}
	if isClosed(e.peer.closed) {
		return e.peer.end()
	}
	select {
	case e.out <- m:
		return nil
	case <-e.self.closed:
		return net.ErrClosed
	case <-e.peer.closed:
		return e.peer.end()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ping implements [link.Pinger].
func (e *End[In, Out]) Ping(ctx context.Context) error {
	pong := make(chan struct{})
	pings := e.peer.pings
	for {
		select {
		case pings <- pong:
			pings = nil
		case <-pong:
			return nil
		case <-e.self.closed:
			return net.ErrClosed
		case <-e.peer.closed:
			return e.peer.end()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close implements [link.Conn].
func (e *End[In, Out]) Close(r link.Reason) error {
	e.self.once.Do(func() {
		e.self.reason = r
		close(e.self.closed)
	})
	return nil
}

// Closed returns a channel that is closed with this end.
func (e *End[In, Out]) Closed() <-chan struct{} { return e.self.closed }

// Reason returns why this end was closed, and the zero Reason while it is open.
func (e *End[In, Out]) Reason() link.Reason {
	if !isClosed(e.self.closed) {
		return link.Reason{}
	}
	return e.self.reason
}

// end returns the error of the other end after this side has closed.
func (s *side) end() error {
	switch s.reason.Cause {
	case link.Normal, link.ShuttingDown:
		return io.EOF
	case link.PeerGone:
		return io.ErrUnexpectedEOF
	default:
		r := s.reason
		return &r
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
