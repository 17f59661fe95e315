package ws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/core/link"
)

// Defaults of [Limits].
const (
	DefaultReadLimit = 1 << 20
	DefaultHardLimit = 100 << 20
)

// Oversize selects how to treat a message over the read limit.
type Oversize uint8

// Ways to treat a message over the read limit.
const (
	// Close ends the connection with 1009. It is the zero Oversize.
	Close Oversize = iota
	// Reject skips the message and reports it as a *[link.Reject]. Beyond the hard limit
	// the connection ends with 1009.
	Reject
)

// Limits bound the messages that are received.
type Limits struct {
	// ReadLimit is the maximum size of a message in bytes. 0 means [DefaultReadLimit].
	ReadLimit int
	// Oversize selects how to treat a larger message.
	Oversize Oversize
	// HardLimit is the maximum size of a message that Reject skips. 0 means
	// [DefaultHardLimit].
	HardLimit int
	// AcceptBinary treats binary messages like text, without checking that they are UTF-8.
	// Otherwise they are reported as a *[link.Reject].
	AcceptBinary bool
}

func (l Limits) withDefaults() Limits {
	if l.ReadLimit <= 0 {
		l.ReadLimit = DefaultReadLimit
	}
	if l.HardLimit <= 0 {
		l.HardLimit = DefaultHardLimit
	}
	if l.HardLimit < l.ReadLimit || l.Oversize == Close {
		l.HardLimit = l.ReadLimit
	}
	return l
}

// Receive implements [link.Conn].
func (c *Conn) Receive(ctx context.Context) ([]byte, error) {
	if c.closing.Load() {
		return nil, c.lost(ctx, net.ErrClosed)
	}
	typ, r, err := c.ws.Reader(ctx)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	buf := borrow(0)
	defer giveBack(buf)

	if typ == websocket.MessageBinary && !c.limits.AcceptBinary {
		return nil, c.skip(ctx, r, buf, 0, &link.Reject{Cause: link.Protocol, Text: "binary message; send text"})
	}
	if err := fill(r, buf, c.limits.ReadLimit); err != nil {
		if errors.Is(err, errOversize) {
			head := string((*buf)[:min(len(*buf), headBytes)])
			return nil, c.skip(ctx, r, buf, len(*buf), &link.Reject{Cause: link.TooLarge, Limit: c.limits.ReadLimit, Head: head})
		}
		return nil, c.lost(ctx, err)
	}
	if typ == websocket.MessageText && !utf8.Valid(*buf) {
		return nil, &link.Reason{
			Cause: link.Protocol,
			Text:  "text that is not UTF-8",
			Code:  int(websocket.StatusInvalidFramePayloadData),
		}
	}
	return handOver(buf), nil
}

// headBytes is how much of a message that is too large is in its Reject. In most dialects,
// the large part of a message comes later.
const headBytes = 4 << 10

// handOver returns the content of buf for the caller to keep: an exact copy if it is small,
// and buf itself if it is too large for the pool.
func handOver(buf *[]byte) []byte {
	if cap(*buf) <= writeBytes {
		return bytes.Clone(*buf)
	}
	return *buf
}

var errOversize = errors.New("message over the limit")

// fill reads one message into buf. It returns errOversize if the message is longer than
// limit; buf then holds what was read.
func fill(r io.Reader, buf *[]byte, limit int) error {
	b := *buf
	defer func() { *buf = b }()
	for {
		if len(b) > limit {
			return errOversize
		}
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(2*cap(b), limit+1)), b...)
		}
		n, err := r.Read(b[len(b):min(cap(b), limit+1)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) && len(b) <= limit {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
}

// skip reads the rest of a message of which size bytes were read, and returns why, the
// refusal, with its size. Beyond the hard limit the connection must end.
func (c *Conn) skip(ctx context.Context, r io.Reader, buf *[]byte, size int, why *link.Reject) error {
	b := (*buf)[:cap(*buf)]
	for {
		if size > c.limits.HardLimit {
			return &link.Reason{
				Cause: link.TooLarge,
				Text:  fmt.Sprintf("message over the limit of %d bytes", c.limits.HardLimit),
			}
		}
		n, err := r.Read(b)
		size += n
		if errors.Is(err, io.EOF) && size <= c.limits.HardLimit {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return c.lost(ctx, err)
		}
	}
	why.Size = size
	if why.Text == "" {
		why.Text = fmt.Sprintf("message of %d bytes is over the limit of %d", size, why.Limit)
	}
	return why
}
