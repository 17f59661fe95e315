package grpcserver

import (
	"context"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
	return handler(srv, &call{ss, !info.IsClientStream, bounded{bound: s.boundOf(info.FullMethod)}})
}

// unary is the interceptor of unary calls.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
	defer s.recovered(info.FullMethod, &err)
	arrived(ctx)
	if err := check(req, s.boundOf(info.FullMethod)); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// call is the stream of a call that was admitted. It applies the limit of its method to
// messages that are received.
type call struct {
	grpc.ServerStream
	one  bool    // it has one request
	next bounded // what is being received
}

// RecvMsg implements [grpc.ServerStream].
func (c *call) RecvMsg(m any) error {
	err := c.receive(m)
	if c.one && err == nil {
		arrived(c.Context())
	}
	return err
}

func (c *call) receive(m any) error {
	if c.next.bound == 0 {
		return c.ServerStream.RecvMsg(m)
	}
	c.next.message = m
	err := c.ServerStream.RecvMsg(&c.next)
	c.next.message = nil
	if err == nil && c.next.size > c.next.bound {
		return tooLargeStatus(c.next.size, c.next.bound)
	}
	return err
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
