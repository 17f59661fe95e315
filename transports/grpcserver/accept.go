package grpcserver

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/core/link"
)

// Accept returns a link.Conn over the bidirectional stream of a handler, and sends the
// response headers, which some clients wait for before they send anything. The handler
// must return, with [Status], when the Conn is closed and both its loops have ended; until
// then it must not use the stream itself. The stream's context ends with the client: run
// the Conn with a longer one, or the end of that context and the end of the stream race to
// be the reason. If the client has already gone, the error is a gRPC status to return from
// the handler.
func Accept[In, Out any](s *Server, stream grpc.BidiStreamingServer[In, Out]) (*Stream[In, Out], error) {
	c := newStream(stream.Recv, stream.Send, served, s.opts.MaxMessageBytes)
	c.gone = stream.Context().Done()
	return c, open(stream, &c.finish)
}

// AcceptPush does the same for a handler that only sends, after its one request was read.
// Receive returns no message; it returns when the client has gone or the stream is closed.
func AcceptPush[Out any](s *Server, stream grpc.ServerStreamingServer[Out]) (*Stream[struct{}, Out], error) {
	gone := stream.Context()
	recv := func() (*struct{}, error) {
		<-gone.Done()
		return nil, status.FromContextError(gone.Err()).Err()
	}
	c := newStream(recv, stream.Send, served, s.opts.MaxMessageBytes)
	c.gone = gone.Done()
	return c, open(stream, &c.finish)
}

// open sends the headers and sets finish.
func open(ss grpc.ServerStream, finish *func(link.Reason, bool)) error {
	end, err := ender(ss.Context())
	if err != nil {
		return err
	}
	*finish = func(r link.Reason, _ bool) { _ = end.WriteStatus(statusOf(r)) } // the peer may have gone
	return ss.SendHeader(nil)
}

// statusWriter is the method of grpc-go's stream that ends it: the status is queued after
// the messages, the stream's context is cancelled, RecvMsg and SendMsg return, and later
// statuses are ignored. It may run at the same time as both.
type statusWriter interface {
	WriteStatus(*status.Status) error
}

// ender finds the stream that ctx belongs to.
func ender(ctx context.Context) (statusWriter, error) {
	if w, ok := grpc.ServerTransportStreamFromContext(ctx).(statusWriter); ok {
		return w, nil
	}
	return nil, status.Error(codes.Internal, "this version of gRPC has no way to end a stream early")
}
