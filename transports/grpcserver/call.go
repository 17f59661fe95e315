package grpcserver

import (
	"context"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Everything that a call passes before its handler is one function and one wrapper of its
// stream: a chain of interceptors would double the stack of each open stream.

// stream is the interceptor of streaming calls.
func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer s.recovered(info.FullMethod, &err)
	leave, err := s.releaseBuiltin(ss.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	defer leave()
	return handler(srv, &call{ss, !info.IsClientStream, s.opts.limitOf(info.FullMethod)})
}

// unary is the interceptor of unary calls.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
	defer s.recovered(info.FullMethod, &err)
	arrived(ctx)
	if err := check(req, s.opts.limitOf(info.FullMethod)); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// call is the stream of a call that was admitted. It applies the limit of its method to
// messages that are received.
type call struct {
	grpc.ServerStream
	one   bool // it has one request
	limit int
}

// RecvMsg implements [grpc.ServerStream].
func (c *call) RecvMsg(m any) error {
	if err := c.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if c.one {
		arrived(c.Context())
	}
	return check(m, c.limit)
}

// check refuses a message that is over the limit of its method, with the error of grpc-go, which has one limit for all
// methods.
func check(m any, limit int) error {
	if size := proto.Size(m.(proto.Message)); size > limit {
		return tooLargeStatus(size, limit)
	}
	return nil
}

func tooLargeStatus(size, limit int) error {
	return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", size, limit)
}

// releaseBuiltin ends the streams of health and reflection when Stop begins; otherwise each
// of them would delay it. It returns a function to call when the handler returns.
func (s *Server) releaseBuiltin(ctx context.Context, method string) (leave func(), err error) {
	if !strings.HasPrefix(method, "/grpc.") {
		return func() {}, nil
	}
	end, err := ender(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(s.stopping, func() {
		_ = end.WriteStatus(status.New(codes.Unavailable, "the server is stopping"))
	})
	return func() { stop() }, nil
}

// recovered is deferred around a handler and turns a panic into an INTERNAL status.
func (s *Server) recovered(method string, err *error) {
	if v := recover(); v != nil {
		s.opts.OnPanic(method, v, debug.Stack())
		*err = status.Error(codes.Internal, "internal error")
	}
}
