package link

import "context"

// Conn is a pipe of whole messages: the one shape every transport yields.
//
// Receive and Send may run beside one another and beside Close, but each is
// called by one goroutine at a time. [Link.Run] is that caller for every
// connection of the program; nobody else touches a Conn.
type Conn[In, Out any] interface {
	// Receive waits for the next whole message. It returns io.EOF when the peer
	// ended the connection in good order, a *[Reason] when the transport knows
	// why it ended (a close code, a message over the limit), and any other error
	// when it was lost. A message that breaks a transport's rule but leaves the
	// connection usable (a line that is too long) is reported as a *[Reject];
	// the next call goes on behind it. Where the wire tells a cut from
	// an end, a cut is never io.EOF, and part of a message never passes for a whole
	// one. When ctx ends first the connection is unusable and must be closed. The
	// message belongs to the caller.
	Receive(ctx context.Context) (In, error)

	// Send writes one whole message and returns once the operating system or the
	// transport's flow control has taken it. Bytes are the caller's again then: nothing
	// of them is kept. Any other m the caller changes no more. When ctx ends first, or
	// any other error is returned, the connection is unusable and must be closed.
	Send(ctx context.Context, m Out) error

	// Close takes the connection down, telling the peer the reason where the
	// transport can. It wakes Receive and Send, returns within a bounded time,
	// and may be called again and from anywhere: the first call wins.
	Close(r Reason) error
}

// Pinger is a Conn that can prove that its peer is alive. Ping returns once the
// peer has answered; it may run beside Receive, Send and Close, needs a Receive
// under way to see the answer, and is woken by Close. A ctx that ends while the ping
// is being written may take the connection with it: bound a ping, and do not cancel it.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Batcher is a Conn that can write several messages with fewer system calls.
// SendBatch obeys the contract of Send and writes all messages in order.
type Batcher[Out any] interface {
	SendBatch(ctx context.Context, ms []Out) error
}
