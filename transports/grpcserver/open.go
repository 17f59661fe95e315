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

// halfCloseTimeout is how long a server may take to end a stream that its client has
// half-closed.
const halfCloseTimeout = time.Second

// Open calls a bidirectional method of generated code, such as client.AgentStream, and
// returns a link.Conn over the stream. The metadata of ctx is sent; otherwise ctx only
// bounds the opening. Open does not wait for the server's answer: the first Receive reports
// a refusal. A message of more than 4 MiB is not sent. The resources of the Conn are freed when it is closed or Receive has returned
// an error.
func Open[Out, In any](
	ctx context.Context,
	method func(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[Out, In], error),
) (*Stream[In, Out], error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	opening := context.AfterFunc(ctx, cancel)
	cs, err := method(life)
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
	s := newStream(c.recv, c.send, answered, DefaultMaxMessageBytes)
	s.finish = c.finish
	return s, nil
}

// clientStream is the client's end of a stream. The two locks let finish take over from the
// loops to end the stream properly.
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

// send writes m. If the stream has ended, gRPC returns only io.EOF to a sender; the status
// goes to the reader, if there is one.
func (c *clientStream[In, Out]) send(m *Out) error {
	c.sending.Lock()
	err := c.cs.Send(m)
	c.sending.Unlock()
	if !errors.Is(err, io.EOF) {
		return err
	}
	timer := time.NewTimer(halfCloseTimeout)
	defer timer.Stop()
	select {
	case <-c.ended:
		return c.err
	case <-timer.C:
		return status.Error(codes.Unavailable, "the server has ended the stream")
	}
}

// finish ends the stream. Cancelling loses messages in flight, so a graceful end first
// half-closes and reads until the server has ended its half.
func (c *clientStream[In, Out]) finish(_ link.Reason, graceful bool) {
	defer c.cancel()
	if !graceful {
		return
	}
	defer time.AfterFunc(halfCloseTimeout, c.cancel).Stop()
	c.sending.Lock() // the timer wakes a blocked Send
	c.cs.CloseSend()
	c.sending.Unlock()
	for {
		if _, err := c.recv(); err != nil {
			return
		}
	}
}
