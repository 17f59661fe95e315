package coretest

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
)

// Fault is what goes wrong in one direction of a [Faulty] connection. Messages are counted
// from 1; the zero Fault is no fault.
type Fault struct {
	// Delay delays every message.
	Delay time.Duration
	// Cut is the number of messages after which the connection is lost, without a reason.
	Cut int
	// Duplicate is the message that is passed on twice.
	Duplicate int
	// Stall is the message that is held back until [Faulty.Release].
	Stall int
}

// Faulty is a Conn with programmed faults. It is not a [link.Batcher], so that each message
// is counted. It is a [link.Pinger]; if the Conn is not one, pings are never answered.
type Faulty[In, Out any] struct {
	conn link.Conn[In, Out]

	in, out  fault
	again    *In // a duplicate to be received next
	closed   chan struct{}
	closing  sync.Once
	released chan struct{}
	release  sync.Once
}

// fault is a Fault and its progress. Only the caller of its direction uses it.
type fault struct {
	Fault
	passed int
}

// Break wraps conn: in applies to messages received from it, out to messages sent to it.
func Break[In, Out any](conn link.Conn[In, Out], in, out Fault) *Faulty[In, Out] {
	return &Faulty[In, Out]{
		conn:     conn,
		in:       fault{Fault: in},
		out:      fault{Fault: out},
		closed:   make(chan struct{}),
		released: make(chan struct{}),
	}
}

// Release passes on stalled messages, now and later, in both directions.
func (f *Faulty[In, Out]) Release() { f.release.Do(func() { close(f.released) }) }

// Receive implements [link.Conn].
func (f *Faulty[In, Out]) Receive(ctx context.Context) (In, error) {
	if m := f.again; m != nil {
		f.again = nil
		return *m, nil
	}
	var none In
	if f.cut(&f.in) {
		return none, net.ErrClosed
	}
	m, err := f.conn.Receive(ctx)
	if err != nil {
		return none, err
	}
	if err := f.pass(ctx, &f.in); err != nil {
		return none, err
	}
	if f.in.passed == f.in.Duplicate {
		f.again = &m
	}
	return m, nil
}

// Send implements [link.Conn].
func (f *Faulty[In, Out]) Send(ctx context.Context, m Out) error {
	if f.cut(&f.out) {
		return net.ErrClosed
	}
	if err := f.pass(ctx, &f.out); err != nil {
		return err
	}
	if f.out.passed == f.out.Duplicate {
		if err := f.conn.Send(ctx, m); err != nil {
			return err
		}
	}
	return f.conn.Send(ctx, m)
}

// Ping implements [link.Pinger].
func (f *Faulty[In, Out]) Ping(ctx context.Context) error {
	if p, ok := f.conn.(link.Pinger); ok {
		return p.Ping(ctx)
	}
	select {
	case <-f.closed:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements [link.Conn].
func (f *Faulty[In, Out]) Close(r link.Reason) error {
	f.closing.Do(func() { close(f.closed) })
	return f.conn.Close(r)
}

// cut cuts the connection once Cut messages have passed.
func (f *Faulty[In, Out]) cut(d *fault) bool {
	if d.Cut == 0 || d.passed < d.Cut {
		return false
	}
	_ = f.Close(link.Reason{Cause: link.PeerGone})
	return true
}

// pass counts one message and delays it as programmed.
func (f *Faulty[In, Out]) pass(ctx context.Context, d *fault) error {
	d.passed++
	if d.passed == d.Stall {
		select {
		case <-f.released:
		case <-f.closed:
			return net.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if d.Delay > 0 {
		t := time.NewTimer(d.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-f.closed:
			return net.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
