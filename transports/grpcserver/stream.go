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

// Stream is a link.Conn over a gRPC stream, at the server's or the client's end. In and Out
// are the message structs of generated code, as in grpc.BidiStreamingServer. It is also a
// link.Batcher.
//
// If the context of Receive or Send ends during the call, the stream is closed: for the
// *link.Reason that is its cause, as PeerGone if it is the stream's own, as Slow if a
// deadline passed while sending, and else as ShuttingDown.
type Stream[In, Out any] struct {
	recv func() (*In, error)
	send func(*Out) error
	// finish ends the stream on the wire. It is called once. If graceful, it may take a
	// bounded time, in which messages in flight arrive.
	finish func(r link.Reason, graceful bool)
	// explain turns an error of recv or send into one of link.Conn.
	explain func(error) error
	limit   int
	// gone is closed when the stream has ended by itself; nil if that is not known.
	gone <-chan struct{}

	in, out watch
	once    sync.Once
	reason  atomic.Pointer[link.Reason]
}

// newStream returns a Stream without finish.
func newStream[In, Out any](recv func() (*In, error), send func(*Out) error, explain func(error) error, limit int) *Stream[In, Out] {
	s := &Stream[In, Out]{recv: recv, send: send, explain: explain, limit: limit}
	s.in.abandon, s.out.abandon = s.abandonReceive, s.abandonSend
	return s
}

var (
	_ link.Conn[*struct{}, *struct{}] = (*Stream[struct{}, struct{}])(nil)
	_ link.Batcher[*struct{}]         = (*Stream[struct{}, struct{}])(nil)
)

// Receive waits for the next message. It returns io.EOF if the peer ended the stream
// properly, the *link.Reason of Close after that was called, and else a *link.Reason with
// the gRPC code: TooLarge for a message over the limit, Protocol for one that cannot be
// decoded, PeerGone for a cancelled or broken stream, and at the client's end the cause of
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

// Send queues m for the writer of the connection, and waits while 64 KiB of this stream are
// queued. A message over the limit is a *link.Reject, after which the stream is still
// usable. Every other error is final.
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

// SendBatch sends each of ms in turn. Messages over the limit are skipped; when all others
// were sent, it returns the *link.Reject of the first.
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

// sent explains an error of send. A message that was queued while Close ran may be written
// after the end of the stream and lost, so it does not count as sent.
func (s *Stream[In, Out]) sent(err error) error {
	if r := s.reason.Load(); r != nil {
		return r
	}
	if err != nil {
		return s.explain(err)
	}
	return nil
}

// Fits returns the size of m on the wire and whether it is within the limit. It may be
// called from any goroutine. If proto.Size or Fits computed the size before, that value is
// used: m must not have changed since.
func (s *Stream[In, Out]) Fits(m *Out) (size int, ok bool) {
	pm, ok := any(m).(proto.Message)
	if !ok {
		return 0, true // the codec reports it
	}
	size = proto.MarshalOptions{UseCachedSize: true}.Size(pm)
	return size, size <= s.limit
}

// Close ends the stream for r and wakes Receive and Send. At the server's end the client
// gets [Status] of r, after the messages sent before; the handler still has to return. At
// the client's end gRPC carries no reason: the stream is half-closed, and cancelled after
// the server has ended it or a second has passed, so that messages in flight arrive; for
// PeerGone, Slow and Unresponsive it is cancelled at once. Later calls wait for the first
// and have no effect. It returns nil.
func (s *Stream[In, Out]) Close(r link.Reason) error {
	switch r.Cause {
	case link.PeerGone, link.Slow, link.Unresponsive:
		s.close(r, false)
	default:
		s.close(r, true)
	}
	return nil
}

// close does the work of Close.
func (s *Stream[In, Out]) close(r link.Reason, graceful bool) {
	s.once.Do(func() {
		s.reason.Store(&r)
		s.finish(r, graceful)
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

// reasonFor returns why ctx has ended, with cause if its own does not say.
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

// tooLarge returns the refusal of a message over the limit.
func tooLarge(size, limit int) error {
	return &link.Reject{
		Cause: link.TooLarge,
		Text:  fmt.Sprintf("message of %d bytes is over the limit of %d", size, limit),
		Size:  size,
		Limit: limit,
	}
}
