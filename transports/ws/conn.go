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
	// closeTimeout bounds the closing handshake. The library would wait 5 seconds
	// to say goodbye and 5 for the answer.
	closeTimeout = time.Second
	// lastWords is how long a Send that found the connection gone waits for Receive
	// to find out why.
	lastWords = 200 * time.Millisecond
)

var (
	_ link.Conn[[]byte, []byte] = (*Conn)(nil)
	_ link.Pinger               = (*Conn)(nil)
	_ link.Batcher[[]byte]      = (*Conn)(nil)
)

// Conn is one WebSocket connection, from either side.
type Conn struct {
	ws     *websocket.Conn
	wire   *wire
	limits Limits

	closing atomic.Bool // Close was called
	once    sync.Once

	ended   chan struct{} // closed once Receive has met the end
	end     error         // that end
	endOnce sync.Once
}

func newConn(c *websocket.Conn, w *wire, l Limits) *Conn {
	c.SetReadLimit(-1) // ours are kept by Receive, which can go on after it
	return &Conn{ws: c, wire: w, limits: l.withDefaults(), ended: make(chan struct{})}
}

// Subprotocol returns the subprotocol that was agreed on, if any.
func (c *Conn) Subprotocol() string { return c.ws.Subprotocol() }

// Send implements [link.Conn]: m is sent as one text message.
func (c *Conn) Send(ctx context.Context, m []byte) error {
	c.wire.cork()
	err := c.ws.Write(ctx, websocket.MessageText, m)
	return c.sent(ctx, err)
}

// SendBatch implements [link.Batcher]: each message is a frame of its own, all of
// them go out in as few writes as there are 64 KiB.
func (c *Conn) SendBatch(ctx context.Context, ms [][]byte) error {
	c.wire.cork()
	for _, m := range ms {
		if err := c.ws.Write(ctx, websocket.MessageText, m); err != nil {
			return c.sent(ctx, err)
		}
	}
	return c.sent(ctx, nil)
}

// sent ends a Send. An error is replaced by what Receive knows, if it knows more:
// the peer may have told why it left.
func (c *Conn) sent(ctx context.Context, err error) error {
	if flushed := c.wire.uncork(); err == nil {
		err = flushed
	}
	if err == nil || c.closing.Load() || ctx.Err() != nil {
		return err
	}
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-c.ended:
		return c.end
	case <-t.C:
		return &link.Reason{Cause: link.PeerGone, Text: "the connection was lost", Err: err}
	}
}

// Ping implements [link.Pinger]. Bytes of a message that takes long to arrive
// count as an answer.
func (c *Conn) Ping(ctx context.Context) error {
	before := c.wire.received.Load()
	err := c.ws.Ping(ctx)
	if err != nil && ctx.Err() != nil && c.wire.received.Load() != before {
		return nil
	}
	return err
}

// Close implements [link.Conn]: it tells the peer the close code of r, or r.Code
// if that is set, waits about a second for its answer, and takes the socket down.
// A peer that is [link.PeerGone] is told nothing.
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
		_ = c.ws.Close(status(r)) // whether the peer has answered changes nothing
		_ = c.wire.Close()
	})
	return nil
}

// lost makes of err what Receive says from now on. The first end is kept: it is
// the one that tells why.
func (c *Conn) lost(ctx context.Context, err error) error {
	c.endOnce.Do(func() {
		c.end = c.endOf(ctx, err)
		close(c.ended)
	})
	return c.end
}

func (c *Conn) endOf(ctx context.Context, err error) error {
	told := closeFrame(err)
	switch {
	case c.closing.Load():
		return net.ErrClosed
	case told != nil:
		return told
	case ctx.Err() != nil:
		return ctx.Err()
	case c.wire.closed.Load() || errors.Is(err, context.DeadlineExceeded):
		// The library gives up when a control frame cannot be written.
		return &link.Reason{Cause: link.Slow, Text: "not even a ping was taken", Err: err}
	case c.wire.failed.Load():
		return &link.Reason{Cause: link.PeerGone, Text: "the connection was lost", Err: err}
	default:
		return &link.Reason{Cause: link.Protocol, Text: "a frame that breaks RFC 6455", Err: err}
	}
}
