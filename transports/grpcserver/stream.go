package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core/link"
)

// Stream is a link.Conn over one gRPC stream, at the server's end or the
// client's. In and Out are the message structs of generated code, as in
// grpc.BidiStreamingServer. It obeys the contract of link.Conn and is a
// link.Batcher.
//
// The context of a call is watched for as long as the call lasts. When it ends
// first, the stream is closed: for the *link.Reason that is its cause, as PeerGone
// if it is the stream's own, as Slow when a message was being sent and a deadline
// passed, and else as ShuttingDown.
type Stream[In, Out any] struct {
	recv func() (*In, error)
	send func(*Out) error
	// finish ends the stream on the wire. It is called once. A polite finish may
	// take a bounded time to let what was sent arrive.
	finish func(r link.Reason, polite bool)
	// explain turns an error of recv or send into one of the Conn's.
	explain func(error) error
	limit   int
	// gone is closed when the stream has ended by itself; nil if nothing says so.
	gone <-chan struct{}

	in, out watch
	once    sync.Once
	reason  atomic.Pointer[link.Reason]
}

// newStream returns a Stream that still lacks its finish.
func newStream[In, Out any](recv func() (*In, error), send func(*Out) error, explain func(error) error, limit int) *Stream[In, Out] {
	s := &Stream[In, Out]{recv: recv, send: send, explain: explain, limit: limit}
	s.in.abandon, s.out.abandon = s.abandonReceive, s.abandonSend
	return s
}

var (
	_ link.Conn[*struct{}, *struct{}] = (*Stream[struct{}, struct{}])(nil)
	_ link.Batcher[*struct{}]         = (*Stream[struct{}, struct{}])(nil)
)

// Receive waits for the next message. It returns io.EOF when the peer ended the
// stream in good order, the *link.Reason given to Close once that was called,
// and a *link.Reason with the gRPC code when the stream ended otherwise: TooLarge
// for a message over the limit, Protocol for one that cannot be decoded, PeerGone
// for a cancelled or broken stream, at the client's end the cause that belongs to
// the server's status. Every error is final.
func (s *Stream[In, Out]) Receive(ctx context.Context) (*In, error) {
	if err := s.in.begin(ctx); err != nil {
		return nil, err
	}
	m, err := s.recv()
	s.in.end()
	if r := s.reason.Load(); r != nil {
		return nil, r
	}
	if err != nil {
		return nil, s.explain(err)
	}
	return m, nil
}

// Send queues m for the connection's writer, waiting while 64 KiB of this stream
// are queued already. A message over the limit is refused as a *link.Reject; the
// stream is not touched and stays usable. Every other error is final.
func (s *Stream[In, Out]) Send(ctx context.Context, m *Out) error {
	if size, ok := s.Fits(m); !ok {
		return tooLarge(size, s.limit)
	}
	if err := s.out.begin(ctx); err != nil {
		return err
	}
	err := s.send(m)
	s.out.end()
	return s.sent(err)
}

// SendBatch does what Send does for each of ms in turn and watches ctx only once.
// Messages over the limit are left out; when all others were sent, the *link.Reject
// of the first is returned.
func (s *Stream[In, Out]) SendBatch(ctx context.Context, ms []*Out) error {
	if err := s.out.begin(ctx); err != nil {
		return err
	}
	var refused error
	for _, m := range ms {
		if size, ok := s.Fits(m); !ok {
			if refused == nil {
				refused = tooLarge(size, s.limit)
			}
			continue
		}
		if err := s.sent(s.send(m)); err != nil {
			s.out.end()
			return err
		}
	}
	s.out.end()
	return refused
}

// sent explains what send returned. A message that was queued while Close ran may
// stand behind the end, where nobody reads it: it does not count as sent.
func (s *Stream[In, Out]) sent(err error) error {
	if r := s.reason.Load(); r != nil {
		return r
	}
	if err != nil {
		return s.explain(err)
	}
	return nil
}

// Fits returns the size of m on the wire and whether that is within the limit.
// It may be called from anywhere. The size is the one that was counted last, by
// proto.Size or here, if any was: whoever queues messages by their size has counted it
// already, and m is not to be changed after.
func (s *Stream[In, Out]) Fits(m *Out) (size int, ok bool) {
	pm, ok := any(m).(proto.Message)
	if !ok {
		return 0, true // the codec will say so
	}
	size = proto.MarshalOptions{UseCachedSize: true}.Size(pm)
	return size, size <= s.limit
}

// Close ends the stream for r and wakes Receive and Send. At the server's end the
// client is told [Status] of r at once, behind what was sent before; the handler
// still has to return. At the client's end gRPC carries no reason: the stream is
// half-closed, the server has up to a second to end it, so that what was sent
// arrives, and then it is cancelled; for PeerGone, Slow and Unresponsive it is
// cancelled at once. Later calls wait for the first and change nothing. It returns
// nil.
func (s *Stream[In, Out]) Close(r link.Reason) error {
	switch r.Cause {
	case link.PeerGone, link.Slow, link.Unresponsive:
		s.close(r, false)
	default:
		s.close(r, true)
	}
	return nil
}

// close is Close.
func (s *Stream[In, Out]) close(r link.Reason, polite bool) {
	s.once.Do(func() {
		s.reason.Store(&r)
		s.finish(r, polite)
		s.in.release()
		s.out.release()
	})
}

// abandonReceive closes the stream when the context of a Receive has ended.
func (s *Stream[In, Out]) abandonReceive(ctx context.Context) {
	s.close(s.reasonFor(ctx, link.ShuttingDown), false)
}

// abandonSend closes the stream when the context of a Send has ended.
func (s *Stream[In, Out]) abandonSend(ctx context.Context) {
	cause := link.ShuttingDown
	if ctx.Err() == context.DeadlineExceeded {
		cause = link.Slow
	}
	s.close(s.reasonFor(ctx, cause), false)
}

// reasonFor says why ctx has ended; cause is for when it does not say itself.
func (s *Stream[In, Out]) reasonFor(ctx context.Context, cause link.Cause) link.Reason {
	var r *link.Reason
	if errors.As(context.Cause(ctx), &r) {
		return *r
	}
	select {
	case <-s.gone:
		return link.Reason{Cause: link.PeerGone, Text: "the peer has ended the stream"}
	default:
		return link.Reason{Cause: cause, Err: context.Cause(ctx)}
	}
}

// tooLarge is the refusal of a message.
func tooLarge(size, limit int) error {
	return &link.Reject{
		Cause: link.TooLarge,
		Text:  fmt.Sprintf("message of %d bytes is over the limit of %d", size, limit),
		Size:  size,
		Limit: limit,
	}
}
