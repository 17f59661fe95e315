package coretest

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
)

// Fault is what goes wrong in one direction of a [Faulty] connection. Messages
// are counted from 1; the zero Fault is no fault.
type Fault struct {
	// Delay is how long every message takes.
	Delay time.Duration
	// Cut is after how many messages the connection is cut, as by a network: both
	// ends lose it, and nobody is told why.
	Cut int
	// Duplicate is the message that passes twice.
	Duplicate int
	// Stall is the message that does not pass until [Faulty.Release].
	Stall int
}

// Faulty is a Conn with faults at programmed places. A batch is not a message of
// its own: Faulty is no [link.Batcher], so that each message is counted. It is a
// [link.Pinger] whose pings pass if the Conn is one, and are never answered if
// not.
type Faulty[In, Out any] struct {
	conn link.Conn[In, Out]

	in, out  fault
	again    *In // a duplicate to be received next
	closed   chan struct{}
	closing  sync.Once
	released chan struct{}
	release  sync.Once
}

// fault is a Fault under way. Only the caller of its direction touches it.
type fault struct {
	Fault
	passed int
}

// Break wraps conn: in befalls what is received from it, out what is sent to it.
func Break[In, Out any](conn link.Conn[In, Out], in, out Fault) *Faulty[In, Out] {
	return &Faulty[In, Out]{
		conn:     conn,
		in:       fault{Fault: in},
		out:      fault{Fault: out},
		closed:   make(chan struct{}),
		released: make(chan struct{}),
	}
}

// Release lets the stalled messages pass, now and later, in both directions.
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

// cut cuts the connection if its time has come.
func (f *Faulty[In, Out]) cut(d *fault) bool {
	if d.Cut == 0 || d.passed < d.Cut {
		return false
	}
	_ = f.Close(link.Reason{Cause: link.PeerGone})
	return true
}

// pass counts one message and holds it up as programmed.
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
