package ws

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/core/link"
)

const (
	// closeTimeout bounds the closing handshake. The library waits 5 seconds for its
	// write and 5 for the answer.
	closeTimeout = time.Second
	// closeFrameWait is how long a Send on a lost connection waits for Receive to get the
	// reason.
	closeFrameWait = 200 * time.Millisecond
)

var (
	_ link.Conn[[]byte, []byte] = (*Conn)(nil)
	_ link.Pinger               = (*Conn)(nil)
	_ link.Batcher[[]byte]      = (*Conn)(nil)
)

// Conn is a WebSocket connection, at either end.
type Conn struct {
	ws     *websocket.Conn
	wire   *wire
	limits Limits

	closing atomic.Bool // Close was called
	once    sync.Once

	ended   chan struct{} // closed when Receive has failed
	end     error         // with this error
	endOnce sync.Once
}

func newConn(c *websocket.Conn, w *wire, l Limits) *Conn {
	c.SetReadLimit(-1) // Receive has limits of its own, after which it can continue
	return &Conn{ws: c, wire: w, limits: l.withDefaults(), ended: make(chan struct{})}
}

// Subprotocol returns the negotiated subprotocol, or "".
func (c *Conn) Subprotocol() string { return c.ws.Subprotocol() }

// Send implements [link.Conn]: m is sent as one text message.
func (c *Conn) Send(ctx context.Context, m []byte) error { return c.SendBatch(ctx, [][]byte{m}) }

// SendBatch implements [link.Batcher]: each message is a frame of its own, and the frames are
// sent in writes of 64 KiB.
func (c *Conn) SendBatch(ctx context.Context, ms [][]byte) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { _ = c.wire.Close() })
		defer stop()
	}
	err := c.wire.send(ms)
	switch {
	case err == nil || c.closing.Load():
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return c.reasonOf(err)
}

// reasonOf returns the error of Receive, if there is one, in place of that of a Send: the peer may
// have sent a reason.
func (c *Conn) reasonOf(err error) error {
	t := time.NewTimer(closeFrameWait)
	defer t.Stop()
	select {
	case <-c.ended:
		return c.end
	case <-t.C:
		return &link.Reason{Cause: link.PeerGone, Text: "the connection was lost", Err: err}
	}
}

// Written implements [link.Meter].
func (c *Conn) Written() int64 { return c.wire.written.Load() }

// Ping implements [link.Pinger]. Bytes of a message that arrives slowly count as an answer.
func (c *Conn) Ping(ctx context.Context) error {
	before := c.wire.received.Load()
	err := c.ws.Ping(ctx)
	if err != nil && ctx.Err() != nil && c.wire.received.Load() != before {
		return nil
	}
	return err
}

// Close implements [link.Conn]. It sends the close code of r, or r.Code if that is set, waits
// about a second for the answer, and closes the socket. For [link.PeerGone] it sends
// nothing.
func (c *Conn) Close(r link.Reason) error {
	c.once.Do(func() {
		c.closing.Store(true)
		if r.Cause == link.PeerGone {
			_ = c.wire.Close()
			_ = c.ws.CloseNow()
			return
		}
		cut := time.AfterFunc(closeTimeout, func() { _ = c.wire.Close() })
		defer cut.Stop()
		_ = c.ws.Close(status(r)) // the socket is closed whether the peer has answered or not
		_ = c.wire.Close()
	})
	return nil
}

// lost turns err into the error of Receive from now on. The first error is kept, because it
// has the reason.
func (c *Conn) lost(ctx context.Context, err error) error {
	c.endOnce.Do(func() {
		c.end = c.endOf(ctx, err)
		close(c.ended)
	})
	return c.end
}

func (c *Conn) endOf(ctx context.Context, err error) error {
	received := closeFrame(err)
	switch {
	case c.closing.Load():
		return net.ErrClosed
	case received != nil:
		return received
	case ctx.Err() != nil:
		return ctx.Err()
	case c.wire.closed.Load() || errors.Is(err, context.DeadlineExceeded):
		// The library fails if it cannot write a control frame.
		return &link.Reason{Cause: link.Slow, Text: "a ping could not be written", Err: err}
	case c.wire.failed.Load():
		return &link.Reason{Cause: link.PeerGone, Text: "the connection was lost", Err: err}
	default:
		return &link.Reason{Cause: link.Protocol, Text: "a frame that breaks RFC 6455", Err: err}
	}
}
