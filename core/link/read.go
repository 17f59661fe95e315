package link

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/dragoman-hub/dragoman/core/memory"
)

// busy in Link.lastReceive means that the reader loop is not receiving, so that silence proves
// nothing about the peer.
const busy = math.MaxInt64

// read is the reader loop, the only caller of Receive. It ends when the link is closed or
// the peer has ended its side.
func (l *Link[In, Out]) read(
	inner context.Context,
	receive func(context.Context, In) error,
	rejected func(context.Context, *Reject) error,
) {
	received := memory.Of(l.opts.Memory, memory.Bodies)
	defer received.Release()
	for {
		if l.pinger != nil {
			l.lastReceive.Store(l.now())
		}
		m, err := l.conn.Receive(l.wire)
		if l.pinger != nil {
			l.lastReceive.Store(busy)
		}
		select {
		case <-l.done: // messages after the close are dropped
			return
		default:
		}

		if err == nil {
			size := sizeOf(m)
			received.Add(size)
			if l.opts.Frames != nil {
				l.opts.Frames.Receive(m)
			}
			err = receive(inner, m)
			if l.opts.Frames != nil {
				l.opts.Frames.Received()
			}
			received.Add(-size)
		} else if err = l.unreceived(inner, err, rejected); errors.Is(err, errEnded) {
			return
		}
		if err != nil {
			l.Close(reasonFrom(err))
			return
		}
	}
}

// sizeOf returns the size of a message of bytes, which is that of most transports; 0 for any
// other.
func sizeOf[In any](m In) int {
	b, _ := any(m).([]byte)
	return len(b)
}

// errEnded ends the reader loop and leaves the link open.
var errEnded = errors.New("the peer ended its side")

// unreceived handles an error of Receive. It returns nil if Receive may be called again,
// else why the link must be closed.
func (l *Link[In, Out]) unreceived(
	inner context.Context,
	err error,
	rejected func(context.Context, *Reject) error,
) error {
	var r *Reject
	switch {
	case errors.As(err, &r) && rejected != nil:
		return rejected(inner, r)
	case r != nil:
		return &Reason{Cause: r.Cause, Text: r.Text}
	case l.opts.EOF != nil && errors.Is(err, io.EOF):
		l.opts.EOF()
		return errEnded
	default:
		end := reasonOf(err)
		return &end
	}
}
