package grpcserver

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// unknownMethod stands for the name of a method that is not registered, which the client
// chose.
const unknownMethod = "(unknown)"

// tap runs when the metadata of a call has arrived and before its body is read. It runs in the
// goroutine that reads the connection.
func (s *Server) tap(ctx context.Context, info *tap.Info) (_ context.Context, err error) {
	if s.opts.Unavailable != nil {
		return ctx, status.Error(codes.Unavailable, s.opts.Unavailable())
	}
	oneRequest, known := s.methods[info.FullMethodName]
	if s.opts.Admit != nil && info.FullMethodName != checkMethod {
		method := info.FullMethodName
		if !known {
			method = unknownMethod
		}
		conn, _ := peerOf(ctx)
		admitted, err := s.admit(ctx, method)
		if err != nil {
			conn.refuse()
			return ctx, err
		}
		conn.Prove()
		ctx = admitted
	}
	if oneRequest {
		ctx = limitBody(ctx, s.opts.BodyTimeout)
	}
	return ctx, nil
}

// admit asks Options.Admit. A panic would end the process here, so it refuses the call.
func (s *Server) admit(ctx context.Context, method string) (admitted context.Context, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.opts.OnPanic(method, v, debug.Stack())
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	return s.opts.Admit(ctx, method)
}

// learn records the methods of a service.
func (s *Server) learn(desc *grpc.ServiceDesc) {
	for _, m := range desc.Methods {
		s.methods["/"+desc.ServiceName+"/"+m.MethodName] = true
	}
	for _, m := range desc.Streams {
		s.methods["/"+desc.ServiceName+"/"+m.StreamName] = !m.ClientStreams
	}
}

// body is the context of a call while its one request arrives. It ends with DeadlineExceeded
// if that takes too long; once arrived was called, it is the context of the call alone.
type body struct {
	context.Context //nolint:containedctx // body is a context
	late            atomic.Bool
	timer           *time.Timer
}

type bodyKey struct{}

// limitBody returns a context for a call whose request may take timeout.
func limitBody(ctx context.Context, timeout time.Duration) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	b := &body{Context: ctx}
	b.timer = time.AfterFunc(timeout, func() {
		b.late.Store(true)
		cancel()
	})
	context.AfterFunc(ctx, func() { b.timer.Stop() })
	return b
}

// Err implements [context.Context].
func (b *body) Err() error {
	err := b.Context.Err()
	if err != nil && b.late.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// Value implements [context.Context].
func (b *body) Value(key any) any {
	if key == (bodyKey{}) {
		return b
	}
	return b.Context.Value(key)
}

// arrived ends the limit: the request of the call is here.
func arrived(ctx context.Context) {
	if b, ok := ctx.Value(bodyKey{}).(*body); ok {
		b.timer.Stop()
	}
}
