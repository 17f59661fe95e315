package peer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// Bounds of tunnels.
const (
	windowBytes = 256 << 10 // that one end has sent and the other has not read
	partBytes   = 32 << 10  // of a message in one frame
	mostTunnels = 8192      // over one connection
)

// visit says who visits which service.
type visit struct {
	Service string     `json:"service"`
	By      hub.Caller `json:"by"`
	// Until and Proof are those of the principal: the credential may be revoked at either hub.
	Until time.Time `json:"until,omitzero"`
	Proof string    `json:"proof,omitempty"`
}

// closing says why an end has closed its tunnel.
type closing struct {
	Cause string `json:"cause"`
	Text  string `json:"text,omitempty"`
	Code  int    `json:"code,omitempty"`
}

// tunnels are those over a connection. The number of a tunnel is even for the end that began it, and
// odd for the other.
type tunnels struct {
	mu   sync.Mutex
	last uint64
	all  map[uint64]*tunnel
	over *link.Reason // why there are no more
}

// tunnel is one end of a connection of a visitor. It has a window of its own: one whose end does not
// read delays nobody else.
type tunnel struct {
	conn   *connection
	number uint64

	mu       sync.Mutex
	parts    [][]byte // that have come, each with 1 or 0 before it
	unread   int      // their bytes
	read     int      // bytes that were read and the other end was not told of
	credit   int      // bytes that may be sent
	sent     bool     // this end has closed it, or the connection has ended
	ended    error    // what Receive returns once all parts are read; nil while it may get more
	arrived  chan struct{}
	credited chan struct{}
	closed   chan struct{} // with sent or ended
}

var _ rpc.Conn = (*tunnel)(nil)

// add adds a tunnel; next takes the next number. It returns an overloaded Fault when there are too
// many, and the reason for which the connection has ended.
func (t *tunnels) add(c *connection, number uint64, next bool) (*tunnel, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over != nil:
		return nil, t.over
	case len(t.all) >= mostTunnels:
		return nil, core.NewFault(core.CodeOverloaded, "%d visitors are at hub %s: try again later", mostTunnels, c.opts.Name)
	case t.all == nil:
		t.all = map[uint64]*tunnel{}
	}
	if next {
		t.last += 2
		number = t.last
	}
	one := &tunnel{conn: c, number: number, credit: windowBytes, arrived: make(chan struct{}, 1), credited: make(chan struct{}, 1), closed: make(chan struct{})}
	t.all[number] = one
	return one, nil
}

func (t *tunnels) get(number uint64) *tunnel {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[number]
}

func (t *tunnels) remove(number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, number)
}

// end ends all tunnels with their connection.
func (t *tunnels) end(name string) {
	why := link.Because(link.ShuttingDown, "the connection to hub %s has ended: connect again", name)
	t.mu.Lock()
	t.over = why
	all := t.all
	t.all = nil
	t.mu.Unlock()
	for _, one := range all {
		one.end(why, true)
	}
}

// visit begins a tunnel to a service of the other hub.
func (o *Peer) dial(service string, by core.Principal) (rpc.Conn, error) {
	body, err := json.Marshal(visit{Service: service, By: hub.CallerOf(by), Until: by.Until, Proof: by.Proof})
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == nil {
		return nil, core.NewFault(core.CodeUnreachable, "hub %s is not connected: ask again in a moment", o.opts.Name)
	}
	t, err := o.conn.tunnels.add(o.conn, 0, true)
	if err != nil {
		return nil, err
	}
	o.write(o.conn, t.frame(frameVisit, body))
	return t, nil
}

// frame returns a frame of the tunnel as the other end numbers it.
func (t *tunnel) frame(kind byte, body []byte) []byte {
	const head = 1 + binary.MaxVarintLen64
	return append(binary.AppendUvarint(append(make([]byte, 0, head+len(body)), kind), t.number^1), body...)
}

var errTunnel = errors.New("a frame of a tunnel without a number")

// visited executes a frame of a tunnel. Frames of tunnels that have ended here are dropped.
func (c *connection) visited(kind byte, body []byte) error {
	number, size := binary.Uvarint(body)
	if size <= 0 {
		return errTunnel
	}
	body = body[size:]
	if kind == frameVisit {
		return c.admit(number, body)
	}
	t := c.tunnels.get(number)
	if t == nil {
		return nil
	}
	switch kind {
	case framePart:
		return t.arrive(body)
	case frameRead:
		n, size := binary.Uvarint(body)
		if size <= 0 || n > windowBytes {
			return errTunnel
		}
		t.allow(int(n))
	case frameClose:
		var r closing
		if err := json.Unmarshal(body, &r); err != nil {
			return err
		}
		t.end(ending(r), false)
	}
	return nil
}

// ending returns what Receive returns once the other end has closed the tunnel.
func ending(r closing) error {
	switch r.Cause {
	case link.Normal.String():
		return io.EOF
	case link.PeerGone.String():
		return io.ErrUnexpectedEOF
	}
	cause := link.Internal // for one that this version does not know
	for known := link.Normal; known < link.Internal; known++ {
		if known.String() == r.Cause {
			cause = known
		}
	}
	return &link.Reason{Cause: cause, Text: r.Text, Code: r.Code}
}

// admit begins to serve a visitor from the other hub.
func (c *connection) admit(number uint64, body []byte) error {
	var v visit
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	if number&1 == 0 || c.tunnels.get(number) != nil {
		return errTunnel
	}
	t, err := c.tunnels.add(c, number, false)
	if err != nil {
		refused := &tunnel{conn: c, number: number, closed: make(chan struct{})}
		return refused.Close(*link.Because(link.Overloaded, "%s", core.AsFault(err).Message))
	}
	by := v.By.Known()
	by.Until, by.Proof = v.Until, v.Proof
	c.serve(func(ctx context.Context) { c.hub.RPC().Accept(ctx, v.Service, by, t) })
	return nil
}

// arrive takes a part of a message.
func (t *tunnel) arrive(part []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(part) == 0 || part[0] > 1 || t.unread+len(part) > windowBytes+partBytes {
		return link.Because(link.Protocol, "hub %s sends more over a tunnel than was read", t.conn.opts.Name)
	}
	if t.sent {
		return nil // nobody reads it any more
	}
	t.parts = append(t.parts, part)
	t.unread += len(part)
	fifo.Signal(t.arrived)
	return nil
}

// allow lets more be sent.
func (t *tunnel) allow(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.credit += n
	fifo.Signal(t.credited)
}

// end notes that the tunnel has ended. own says that this end ended it, which then reads no more.
func (t *tunnel) end(why error, own bool) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first = !t.sent && t.ended == nil
	if first {
		close(t.closed)
	}
	if t.ended == nil {
		t.ended = why
	}
	if own && !t.sent {
		first, t.sent, t.parts, t.unread = true, true, nil, 0
	}
	return first
}

// Receive implements [link.Conn].
func (t *tunnel) Receive(ctx context.Context) ([]byte, error) {
	var m []byte
	for {
		part, ok, err := t.next()
		switch {
		case err != nil:
			return nil, err
		case ok:
			if m == nil && part[0] == 0 {
				return part[1:], nil
			}
			if m = append(m, part[1:]...); part[0] == 0 {
				return m, nil
			}
			continue
		}
		select {
		case <-t.arrived:
		case <-t.closed: // then next returns what is left, or why
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// next returns the next part that has come, if there is one.
func (t *tunnel) next() (part []byte, ok bool, err error) {
	t.mu.Lock()
	if len(t.parts) == 0 {
		defer t.mu.Unlock()
		return nil, false, t.ended
	}
	part, t.parts[0] = t.parts[0], nil
	if t.parts = t.parts[1:]; len(t.parts) == 0 {
		t.parts = nil
	}
	t.unread -= len(part)
	t.read += len(part)
	told := 0
	if t.read >= windowBytes/4 && t.ended == nil {
		told, t.read = t.read, 0
	}
	t.mu.Unlock()
	if told > 0 {
		t.tell(t.frame(frameRead, binary.AppendUvarint(nil, uint64(told))))
	}
	return part, true, nil
}

// tell queues a small frame without waiting.
func (t *tunnel) tell(frame []byte) {
	c := t.conn
	if err := c.link.Send(now, frame, len(frame)); err != nil {
		c.link.Close(*link.Because(link.Slow, "hub %s takes no more frames", c.opts.Name))
	}
}

// Send implements [link.Conn]. It waits while the other end does not read.
func (t *tunnel) Send(ctx context.Context, m []byte) error {
	for {
		part := m[:min(len(m), partBytes)]
		m = m[len(part):]
		more := byte(0)
		if len(m) > 0 {
			more = 1
		}
		if err := t.take(ctx, 1+len(part)); err != nil {
			return err
		}
		if err := t.conn.visits.send(ctx, t.conn.link, t.frame(framePart, append([]byte{more}, part...))); err != nil {
			return err
		}
		if more == 0 {
			return nil
		}
	}
}

// take takes credit for n bytes.
func (t *tunnel) take(ctx context.Context, n int) error {
	for {
		t.mu.Lock()
		if t.sent || t.ended != nil {
			defer t.mu.Unlock()
			return errors.Join(io.ErrClosedPipe, t.ended)
		}
		fits := t.credit >= n
		if fits {
			t.credit -= n
		}
		t.mu.Unlock()
		if fits {
			return nil
		}
		select {
		case <-t.credited:
		case <-t.closed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close implements [link.Conn]. What was sent before is received.
func (t *tunnel) Close(r link.Reason) error {
	if r.Cause == 0 {
		r.Cause = link.Normal
	}
	if !t.end(&r, true) {
		return nil
	}
	t.conn.tunnels.remove(t.number)
	body, err := json.Marshal(closing{Cause: r.Cause.String(), Text: r.Text, Code: r.Code})
	if err == nil {
		t.tell(t.frame(frameClose, body))
	}
	return err
}
