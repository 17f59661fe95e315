package link

import "context"

// Conn is a pipe of whole messages, the interface of every transport.
//
// Receive, Send and Close may run at the same time, but Receive and Send are each called by
// one goroutine at a time. In this program that is always [Link.Run].
type Conn[In, Out any] interface {
	// Receive waits for the next whole message, which then belongs to the caller. It
	// returns io.EOF if the peer ended the connection properly, a *[Reason] if the
	// transport knows why it ended (a close code, a message over the limit), and any other
	// error if it was lost. A message that breaks a rule of the transport but leaves the
	// connection usable (a line that is too long) is a *[Reject]; the next call continues
	// after it. If the protocol distinguishes a lost connection from a proper end, a lost
	// one is never io.EOF. A part of a message is never returned as a whole one. If ctx ends
	// first, the connection is unusable and must be closed.
	Receive(ctx context.Context) (In, error)

	// Send writes one whole message and returns when the operating system or the flow
	// control of the transport has taken it. If m is a byte slice, the caller may then
	// reuse it; any other m must not be changed any more. After an error, that of ctx
	// included, the connection is unusable and must be closed.
	Send(ctx context.Context, m Out) error

	// Close closes the connection, and tells the peer the reason if the transport can. It
	// wakes Receive and Send and returns within a bounded time. It may be called several
	// times and from any goroutine; only the first call has an effect.
	Close(r Reason) error
}

// Pinger is a Conn that can check whether its peer is alive. Ping returns when the peer has
// answered. It may run at the same time as Receive, Send and Close; it needs a running
// Receive to see the answer, and Close wakes it. If ctx ends while the ping is being
// written, the connection may be lost: give a ping a deadline, but do not cancel it.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Meter is a Conn that counts the bytes which the operating system or the flow control of the
// transport has taken, those of a Send under way included. A peer that reads a long message slowly
// is then told from one that reads nothing. Written may be called at any time.
type Meter interface {
	Written() int64
}

// Batcher is a Conn that can write several messages with fewer system calls.
// SendBatch has the contract of Send and writes all messages in order.
type Batcher[Out any] interface {
	SendBatch(ctx context.Context, ms []Out) error
}
