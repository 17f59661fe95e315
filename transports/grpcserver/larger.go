package grpcserver

import (
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

// bound is how large a request of one method may be; zero where grpc-go sees to it.
type bound int

// boundOf returns the bound of a method.
func (s *Server) boundOf(method string) bound {
	if limit := max(s.opts.MaxMessageBytes, s.opts.Larger[method]); limit < s.largest {
		return bound(limit)
	}
	return 0
}

// check refuses a request that is larger than those of its method may be.
func (b bound) check(m any) error {
	if b == 0 {
		return nil
	}
	pm, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	if size := proto.Size(pm); size > int(b) {
		return tooLargeStatus(size, int(b))
	}
	return nil
}

func tooLargeStatus(size, limit int) error {
	return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", size, limit)
}
