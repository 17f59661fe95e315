package grpcserver

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// grpc-go has one limit for all messages that a server receives. If some methods have a
// larger one, the limit of the others is checked here, with the error text of grpc-go.

// largest is the largest limit of any call.
func (o Options) largest() int {
	largest := o.MaxMessageBytes
	for _, n := range o.Larger {
		largest = max(largest, n)
	}
	return largest
}

// boundOf returns the limit for requests of the method; zero if grpc-go checks it.
func (s *Server) boundOf(method string) int {
	if limit := max(s.opts.MaxMessageBytes, s.opts.Larger[method]); limit < s.largest {
		return limit
	}
	return 0
}

// check refuses a request that is larger than bound, unless bound is zero.
func check(req any, bound int) error {
	pm, ok := req.(proto.Message)
	if bound == 0 || !ok {
		return nil
	}
	if size := proto.Size(pm); size > bound {
		return tooLargeStatus(size, bound)
	}
	return nil
}

// bounded is a message of a stream that is decoded only if it is not larger than bound. Its
// size is known before and need not be computed again.
type bounded struct {
	message     any
	bound, size int
}

// codec is the codec of grpc-go, with bounded messages.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if b, ok := v.(*bounded); ok {
		if b.size = data.Len(); b.size > b.bound {
			return nil // an error would end the stream as a protocol error
		}
		v = b.message
	}
	return c.CodecV2.Unmarshal(data, v)
}

func tooLargeStatus(size, limit int) error {
	return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", size, limit)
}
