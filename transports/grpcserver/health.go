package grpcserver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// checkMethod is the one method that needs no credentials.
const checkMethod = healthpb.Health_Check_FullMethodName

const (
	// maxHealthBytes is the largest request of the health service: the name of a service.
	maxHealthBytes = 256
	// maxWatches and maxWatchesOfConn bound the streams of Watch.
	maxWatches       = 256
	maxWatchesOfConn = 4
)

// healthDesc describes grpc.health.v1 with all methods as streams. That looks the same on the
// wire, but its handlers begin before the request is read: grpc-go has one size limit for the
// requests of all methods.
func (s *Server) healthDesc() *grpc.ServiceDesc {
	desc := healthpb.Health_ServiceDesc
	desc.HandlerType, desc.Methods = nil, nil
	desc.Streams = []grpc.StreamDesc{
		{StreamName: "Check", Handler: answering(s.health.Check)},
		{StreamName: "List", Handler: answering(s.health.List)},
		{StreamName: "Watch", Handler: s.watchHealth, ServerStreams: true},
	}
	return &desc
}

// answering returns the handler of a health method with one answer.
func answering[In, Out any, PIn interface {
	*In
	proto.Message
}](call func(context.Context, PIn) (*Out, error),
) grpc.StreamHandler {
	return func(_ any, ss grpc.ServerStream) error {
		in := PIn(new(In))
		if err := readBounded(ss.Context(), in, maxHealthBytes); err != nil {
			return err
		}
		out, err := call(ss.Context(), in)
		if err != nil {
			return err
		}
		return ss.SendMsg(out)
	}
}

// watchHealth is the handler of Watch.
func (s *Server) watchHealth(_ any, ss grpc.ServerStream) error {
	conn, _ := peerOf(ss.Context())
	defer conn.watches.Add(-1)
	defer s.watches.Add(-1)
	if all, here := s.watches.Add(1), conn.watches.Add(1); all > maxWatches || here > maxWatchesOfConn {
		return status.Errorf(codes.ResourceExhausted, "too many watches: at most %d of a connection and %d in all", maxWatchesOfConn, maxWatches)
	}
	in := &healthpb.HealthCheckRequest{}
	if err := readBounded(ss.Context(), in, maxHealthBytes); err != nil {
		return err
	}
	return s.health.Watch(in, &grpc.GenericServerStream[healthpb.HealthCheckRequest, healthpb.HealthCheckResponse]{ServerStream: ss})
}

// messageReader are the methods of grpc-go's stream that read a message in two steps. Like
// [statusWriter] they are no part of its documented interface.
type messageReader interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
}

// readBounded reads the request of a call, which has one message. It reads none that is larger than bound.
func readBounded(ctx context.Context, into proto.Message, bound int) error {
	r, ok := grpc.ServerTransportStreamFromContext(ctx).(messageReader)
	if !ok {
		return status.Error(codes.Internal, "this version of gRPC has no way to read a bounded message")
	}
	var head [5]byte // whether it is compressed, and the size (gRPC over HTTP/2, "Length-Prefixed-Message")
	if err := r.ReadMessageHeader(head[:]); err != nil {
		return cutStatus(err)
	}
	size := binary.BigEndian.Uint32(head[1:])
	switch {
	case head[0] != 0:
		return status.Error(codes.Unimplemented, "send requests of the health service without compression")
	case int64(size) > int64(bound):
		return tooLargeStatus(int(size), bound)
	}
	data, err := r.Read(int(size))
	if err != nil {
		return cutStatus(err)
	}
	defer data.Free()
	if err := r.ReadMessageHeader(head[:]); err == nil {
		return status.Error(codes.Internal, "cardinality violation: expected no message after the first")
	} else if !errors.Is(err, io.EOF) {
		return cutStatus(err)
	}
	arrived(ctx)
	if err := proto.Unmarshal(data.Materialize(), into); err != nil {
		return status.Error(codes.InvalidArgument, "the request is not a message of the health service")
	}
	return nil
}

// cutStatus is the status of a request that could not be read, which is that of grpc-go where the
// client has sent none or only a part.
func cutStatus(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return status.Error(codes.Internal, "cardinality violation: received no request message")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return status.Error(codes.Internal, io.ErrUnexpectedEOF.Error())
	}
	return status.Convert(err).Err()
}
