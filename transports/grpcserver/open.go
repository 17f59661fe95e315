package grpcserver

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/core/link"
)

// partingTime is how long a server has to end a stream that its client has
// closed in good order.
const partingTime = time.Second

// OpenOptions are the settings of one client stream. The zero value is useful.
type OpenOptions struct {
	// MaxMessageBytes bounds a message that is sent: 4 MiB.
	MaxMessageBytes int
	// Call is given to gRPC when it opens the stream.
	Call []grpc.CallOption
}

// Open calls a bidirectional method, given as generated code has it, such as
// client.AgentStream, and makes a link.Conn of the stream. The metadata of ctx is
// sent; otherwise ctx bounds the opening only. Open does not wait for the server's
// answer: a refusal is what the first Receive reports. The Conn must be closed, or
// Receive must have returned an error, for its resources to be freed.
func Open[Out, In any](
	ctx context.Context,
	method func(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[Out, In], error),
	o OpenOptions,
) (*Stream[In, Out], error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	opening := context.AfterFunc(ctx, cancel)
	cs, err := method(life, o.Call...)
	if err == nil && !opening() {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	c := &clientStream[In, Out]{
		cs:     cs,
		cancel: cancel,
		ended:  make(chan struct{}),
	}
	s := newStream(c.recv, c.send, answered, or(o.MaxMessageBytes, DefaultMaxMessageBytes))
	s.finish = c.finish
	return s, nil
}

// clientStream is the client's end of a stream. To end it in good order, finish takes
// over from the loops: that is what the two locks are for.
type clientStream[In, Out any] struct {
	cs                 grpc.BidiStreamingClient[Out, In]
	cancel             context.CancelFunc
	sending, receiving sync.Mutex
	// ended is closed when the stream has ended with err.
	ended chan struct{}
	err   error
}

func (c *clientStream[In, Out]) recv() (*In, error) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	m, err := c.cs.Recv()
	if err != nil && c.err == nil {
		c.err = err
		close(c.ended)
		c.cancel()
	}
	return m, err
}

// send writes m. gRPC tells a sender only that the stream has ended; why, the
// reader is about to hear, if there is one.
func (c *clientStream[In, Out]) send(m *Out) error {
	c.sending.Lock()
	err := c.cs.Send(m)
	c.sending.Unlock()
	if !errors.Is(err, io.EOF) {
		return err
	}
	timer := time.NewTimer(partingTime)
	defer timer.Stop()
	select {
	case <-c.ended:
		return c.err
	case <-timer.C:
		return status.Error(codes.Unavailable, "the server has ended the stream")
	}
}

// finish ends the stream. A message that Cancel overtakes is lost, so that a
// polite end half-closes first and reads until the server has ended its half.
func (c *clientStream[In, Out]) finish(_ link.Reason, polite bool) {
	defer c.cancel()
	if !polite {
		return
	}
	defer time.AfterFunc(partingTime, c.cancel).Stop()
	c.sending.Lock() // a Send that is stuck is woken by the timer
	c.cs.CloseSend()
	c.sending.Unlock()
	for {
		if _, err := c.recv(); err != nil {
			return
		}
	}
}
