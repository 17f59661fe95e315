package bus

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
)

// Bounds of a connection.
const (
	// windowBytes is how much may be under way: sent and not read by the other end.
	windowBytes = 4 << 20
	// packetBytes is the most in one message of the bus.
	packetBytes = 256 << 10
	// ackBytes is how much is read before the other end is told, and ackTime how long it waits
	// for less.
	ackBytes = windowBytes / 8
	ackTime  = 50 * time.Millisecond
	// repeatTime is how long nothing is acknowledged before the first packet is sent again, or how
	// long the window is full before the other end is asked what it has read.
	repeatTime = 300 * time.Millisecond
	// frameBytes is the longest frame.
	frameBytes = 128 << 20
)

var (
	_ link.Conn[[]byte, []byte] = (*Conn)(nil)
	_ link.Batcher[[]byte]      = (*Conn)(nil)
)

// Conn is a connection to a life of another hub. A [Node] makes it.
type Conn struct {
	node    *Node
	peer    Life
	subject string // where the peer gets its packets
	number  uint64 // among those of the node

	mu     sync.Mutex
	closed error  // why it has ended; nil while it has not
	other  uint64 // the number of the connection of the other end; 0 before it is known

	// What is sent: out has the bytes from acked on, which the other end may not have, of which those
	// up to sent were published. It has read those up to drained.
	out                  []byte
	acked, sent, drained uint64
	room                 chan struct{} // closed when there is room again; nil if nobody waits
	repeat               *time.Timer   // runs sendAgain: set while bytes are not acknowledged, or somebody waits

	// What has arrived: in has the bytes from read up to got.
	in        []byte
	read, got uint64
	toldRead  uint64 // what the other end was told of these
	toldGot   uint64
	ack       *time.Timer   // tells it
	news      chan struct{} // has a token when there is something to receive
	asked     bool          // the other end was asked to send again
	last      uint64        // where the stream of the other end ends; 0 while it does not
	buf       []byte        // of the packets
}

func newConn(n *Node, peer Life) *Conn {
	c := &Conn{node: n, peer: peer, subject: subject(peer), news: make(chan struct{}, 1)}
	c.repeat = time.AfterFunc(time.Hour, c.sendAgain)
	c.ack = time.AfterFunc(time.Hour, c.acknowledge)
	c.repeat.Stop()
	c.ack.Stop()
	return c
}

// Send implements [link.Conn]. It waits while the window is full.
func (c *Conn) Send(ctx context.Context, m []byte) error { return c.SendBatch(ctx, [][]byte{m}) }

// SendBatch implements [link.Batcher].
func (c *Conn) SendBatch(ctx context.Context, batch [][]byte) error {
	for i, m := range batch {
		if err := c.enter(ctx); err != nil {
			return err
		}
		c.out = append(binary.AppendUvarint(c.out, uint64(len(m))), m...)
		if i == len(batch)-1 || c.isFull() {
			c.flush()
		}
		c.mu.Unlock()
	}
	return nil
}

// isFull reports whether the other end has not read a window of bytes. Callers hold mu.
func (c *Conn) isFull() bool { return c.acked+uint64(len(c.out)) >= c.drained+windowBytes }

// enter waits until there is room in the window, and returns with mu held unless it fails.
func (c *Conn) enter(ctx context.Context) error {
	c.mu.Lock()
	for c.closed == nil && c.isFull() {
		if c.room == nil {
			c.room = make(chan struct{})
			c.repeat.Reset(repeatTime)
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		c.mu.Lock()
	}
	if c.closed != nil {
		defer c.mu.Unlock()
		return c.closed
	}
	return nil
}

// flush publishes what was not published. Callers hold mu.
func (c *Conn) flush() {
	for end := c.acked + uint64(len(c.out)); c.sent < end; {
		part := c.out[c.sent-c.acked:]
		part = part[:min(len(part), packetBytes)]
		c.publish(packet{offset: c.sent, data: part})
		c.sent += uint64(len(part))
	}
	c.repeat.Reset(repeatTime)
}

// publish sends a packet with what was read. What is not published is lost, and sent again later.
// Callers hold mu.
func (c *Conn) publish(p packet) {
	p.from, p.got, p.read, p.conn, p.peer = c.node.self, c.got, c.read, c.number, c.other
	c.toldGot, c.toldRead = c.got, c.read
	c.ack.Stop()
	c.buf = p.append(c.buf[:0])
	_ = c.node.bus.Publish(c.subject, c.buf)
	if cap(c.buf) > 2*packetBytes {
		c.buf = nil
	}
}

// sendAgain sends the first bytes that were not acknowledged again. If all were, and the window is full,
// it asks how much was read: the packet that said so may be lost.
func (c *Conn) sendAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed != nil:
		return
	case len(c.out) > 0:
		c.publish(packet{offset: c.acked, data: c.out[:min(len(c.out), packetBytes, int(c.sent-c.acked))]})
	case c.room != nil:
		c.publish(packet{offset: c.acked - 1, data: make([]byte, 1)}) // a byte that has arrived is answered
	default:
		return
	}
	c.repeat.Reset(repeatTime)
}

// acknowledge tells the other end what has arrived and what was read.
func (c *Conn) acknowledge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == nil {
		c.publish(packet{offset: c.sent})
	}
}

// Receive implements [link.Conn].
func (c *Conn) Receive(ctx context.Context) ([]byte, error) {
	for {
		m, ok, err := c.next()
		if ok || err != nil {
			return m, err
		}
		select {
		case <-c.news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// next returns the next whole frame, if there is one.
func (c *Conn) next() (m []byte, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, size := binary.Uvarint(c.in)
	switch {
	case size < 0 || n > frameBytes:
		return nil, false, link.Because(link.Protocol, "a frame has %d bytes, the limit is %d", n, frameBytes)
	case size == 0 || uint64(len(c.in)-size) < n:
		return nil, false, c.closed
	}
	end := size + int(n)
	m = append(make([]byte, 0, n), c.in[size:end]...)
	if c.in = c.in[end:]; len(c.in) == 0 {
		c.in = nil
	}
	if c.read += uint64(end); c.closed == nil && c.read-c.toldRead >= ackBytes {
		c.publish(packet{offset: c.sent})
	}
	return m, true, nil
}

// arrived takes a packet of the other end.
func (c *Conn) arrived(p packet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil || !c.isFrom(p) {
		return
	}
	c.confirm(p)
	switch {
	case p.flags&flagClose != 0:
		c.last = p.offset
	case p.offset > c.got:
		if !c.asked { // once for each hole
			c.asked = true
			c.publish(packet{offset: c.sent, flags: flagAgain})
		}
	case p.offset+uint64(len(p.data)) <= c.got:
		if len(p.data) > 0 { // the other end has not heard that these have arrived
			c.ack.Reset(0)
		}
	default:
		c.asked = false
		if c.got == c.toldGot {
			c.ack.Reset(ackTime)
		}
		fresh := p.data[c.got-p.offset:]
		c.in = append(c.in, fresh...)
		c.got += uint64(len(fresh))
		if c.got-c.toldGot >= ackBytes {
			c.publish(packet{offset: c.sent})
		}
		c.wake()
	}
	if c.last > 0 && c.last == c.got || p.flags&flagClose != 0 && p.offset == 0 {
		c.end(io.EOF)
	}
}

// isFrom reports whether a packet is of the connection that the other end has to this one. A later
// one of the other end means that this one is over. Callers hold mu.
func (c *Conn) isFrom(p packet) bool {
	switch {
	case p.peer != 0 && p.peer != c.number, p.conn < c.other:
		return false
	case c.other == 0:
		c.other = p.conn
	case p.conn > c.other:
		c.end(io.EOF)
		return false
	}
	return true
}

// confirm drops what the other end has. Callers hold mu.
func (c *Conn) confirm(p packet) {
	if p.got > c.acked && p.got <= c.sent {
		if c.out, c.acked = c.out[p.got-c.acked:], p.got; len(c.out) == 0 {
			c.out = nil
		}
		c.repeat.Reset(repeatTime)
	}
	c.drained = max(c.drained, min(p.read, c.acked))
	if c.room != nil && !c.isFull() {
		close(c.room)
		c.room = nil
	}
	if len(c.out) == 0 && c.room == nil {
		c.repeat.Stop()
	}
	if p.flags&flagAgain != 0 && len(c.out) > 0 {
		c.sent = c.acked
		c.flush()
	}
}

func (c *Conn) wake() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// Close implements [link.Conn]. The other end gets the end of the stream.
func (c *Conn) Close(link.Reason) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == nil {
		c.publish(packet{offset: c.sent, flags: flagClose})
		c.end(net.ErrClosed)
	}
	return nil
}

// end ends the connection. Callers hold mu.
func (c *Conn) end(why error) {
	c.closed = why
	c.out = nil
	c.repeat.Stop()
	c.ack.Stop()
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	c.wake()
	c.node.forget(c)
}
