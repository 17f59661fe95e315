package grpcserver

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
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

// boundOf returns how large a request of the method may be; zero where grpc-go sees
// to it.
func (s *Server) boundOf(method string) int {
	if limit := max(s.opts.MaxMessageBytes, s.opts.Larger[method]); limit < s.largest {
		return limit
	}
	return 0
}

// check refuses a request, read already, that is larger than bound, unless that is
// zero.
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

// bounded stands for a message of a stream that is to be read if it is not larger
// than bound. Its size, which is known before it is read, need not be counted after.
type bounded struct {
	message     any
	bound, size int
}

// codec is that of grpc-go, and knows what is bounded.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if b, ok := v.(*bounded); ok {
		if b.size = data.Len(); b.size > b.bound {
			return nil // an error would end the stream as a broken one
		}
		v = b.message
	}
	return c.CodecV2.Unmarshal(data, v)
}

func tooLargeStatus(size, limit int) error {
	return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", size, limit)
}
