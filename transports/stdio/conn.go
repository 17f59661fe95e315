package stdio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core/link"
)

// DefaultLimit is the default of Options.Limit.
const DefaultLimit = 10_485_760

// joinBytes is how many bytes of messages are copied together for one write.
const joinBytes = 64 << 10

// Options are the limits of a connection. A zero field means its default.
type Options struct {
	// Limit is the maximum length of a line in bytes, without the line break. 0 means
	// [DefaultLimit].
	Limit int
	// Admit, if set, reports whether there is room for a connection that a [Listener] has
	// accepted. If not, the connection is closed.
	Admit func(net.Conn) bool
}

var (
	_ link.Conn[[]byte, []byte] = (*Conn)(nil)
	_ link.Batcher[[]byte]      = (*Conn)(nil)
)

// Conn is a connection whose messages are lines.
type Conn struct {
	in  splitter
	r   io.ReadCloser
	w   io.WriteCloser
	one bool // r and w are the same value

	closing atomic.Bool
	once    sync.Once
	err     error
}

// New returns a Conn that reads r and writes w and owns both. Close of either must wake its
// Read or Write, as with sockets and files that can be polled. r and w may be the same
// value.
func New(r io.ReadCloser, w io.WriteCloser, opts Options) *Conn {
	limit := opts.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	c := &Conn{r: r, w: w, in: splitter{r: r, limit: limit}}
	if both, ok := r.(io.WriteCloser); ok && both == w {
		c.one = true
	}
	return c
}

// Receive implements [link.Conn].
func (c *Conn) Receive(ctx context.Context) ([]byte, error) {
	if c.closing.Load() {
		return nil, net.ErrClosed
	}
	defer c.bound(ctx)()
	m, err := c.in.next()
	if err == nil {
		return m, nil
	}
	return nil, c.failure(ctx, err)
}

// Send implements [link.Conn].
func (c *Conn) Send(ctx context.Context, m []byte) error {
	defer c.bound(ctx)()
	return c.failure(ctx, c.write(m))
}

// SendBatch implements [link.Batcher]: the lines are sent in writes of 64 KiB.
func (c *Conn) SendBatch(ctx context.Context, ms [][]byte) error {
	defer c.bound(ctx)()
	buf := buffers.Get().(*[]byte)
	defer giveBack(buf)
	for _, m := range ms {
		if len(*buf) > 0 && len(*buf)+len(m)+1 > joinBytes {
			if _, err := c.w.Write(*buf); err != nil {
				return c.failure(ctx, err)
			}
			*buf = (*buf)[:0]
		}
		*buf = appendLine(*buf, m)
	}
	_, err := c.w.Write(*buf)
	return c.failure(ctx, err)
}

// write writes one line, without a copy if it is large.
func (c *Conn) write(m []byte) error {
	if len(m) >= joinBytes && bytes.IndexByte(m, '\n') < 0 && bytes.IndexByte(m, '\r') < 0 {
		if _, err := c.w.Write(m); err != nil {
			return err
		}
		_, err := c.w.Write(newline)
		return err
	}
	buf := buffers.Get().(*[]byte)
	defer giveBack(buf)
	*buf = appendLine(*buf, m)
	_, err := c.w.Write(*buf)
	return err
}

var newline = []byte{'\n'}

// appendLine appends m as a line.
func appendLine(b, m []byte) []byte {
	from := len(b)
	b = append(b, m...)
	blank(b[from:])
	return append(b, '\n')
}

// blank replaces every line break by a space.
func blank(b []byte) {
	for _, br := range []byte{'\n', '\r'} {
		for rest := b; ; {
			i := bytes.IndexByte(rest, br)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}

// Close implements [link.Conn]. What was sent before still reaches the peer.
func (c *Conn) Close(link.Reason) error {
	c.once.Do(func() {
		c.closing.Store(true)
		c.err = c.w.Close()
		if !c.one {
			c.err = errors.Join(c.err, c.r.Close())
		}
	})
	return c.err
}

// bound closes the connection when ctx ends, until the returned function is called.
func (c *Conn) bound(ctx context.Context) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close(link.Reason{}) })
	return func() { stop() }
}

// failure returns the error of a call that failed with err.
func (c *Conn) failure(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case c.closing.Load():
		return net.ErrClosed
	default:
		return err
	}
}

// buffers is a pool of buffers for one write each.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func giveBack(b *[]byte) {
	if cap(*b) <= 2*joinBytes {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}
