package grpcserver

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// grpc-go has one limit for all that a server receives. Where a call may have more
// than others, the others are held to theirs here, in the words of grpc-go.

// largest is the most that any request may have.
func (o Options) largest() int {
	most := o.MaxMessageBytes
	for _, n := range o.Larger {
		most = max(most, n)
	}
	return most
}

// check refuses a request that is larger than those of its method may be.
func (o Options) check(method string, m any) error {
	limit := max(o.MaxMessageBytes, o.Larger[method])
	if limit == o.largest() {
		return nil // grpc-go has seen to it
	}
	if pm, ok := m.(proto.Message); ok && proto.Size(pm) > limit {
		return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", proto.Size(pm), limit)
	}
	return nil
}

func (s *Server) boundUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := s.opts.check(info.FullMethod, req); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (s *Server) boundStream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, &boundedStream{ss, s.opts, info.FullMethod})
}

// boundedStream holds what it receives to the limit of its method.
type boundedStream struct {
	grpc.ServerStream
	opts   Options
	method string
}

func (b *boundedStream) RecvMsg(m any) error {
	if err := b.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return b.opts.check(b.method, m)
}
