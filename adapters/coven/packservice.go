package coven

import (
	"context"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// PackService is the gRPC service coven.PackService.
type PackService struct {
	pb.UnimplementedPackServiceServer
	hub    *hub.Hub
	accept func(*pb.PackManifest, pb.PackService_RegisterServer) error
}

// NewPackService returns a service that hands each registration to accept, which
// turns it into a connection for [ServePack] and returns the status that the stream
// ends with. What packs answer goes to the hub.
func NewPackService(h *hub.Hub, accept func(*pb.PackManifest, pb.PackService_RegisterServer) error) *PackService {
	return &PackService{hub: h, accept: accept}
}

// Register implements PackService.
func (s *PackService) Register(m *pb.PackManifest, stream pb.PackService_RegisterServer) error {
	return s.accept(m, stream)
}

// MaxResultBytes is how large a ToolResult may be for the hub to read whose it is.
// One above 4 MiB is refused all the same, as who called is told at once; of a
// larger one the hub never learns, and the call takes its time.
const MaxResultBytes = 4 * wire.DefaultMaxMessageBytes

// ToolResult implements PackService. It is answered with OK whatever becomes of a
// result that fits into a message: existing packs end when it is not. The id of a call is a secret between the
// hub and the pack; who knows it may answer.
func (s *PackService) ToolResult(_ context.Context, m *pb.ExecuteToolResponse) (*emptypb.Empty, error) {
	pack := s.hub.Provider(m.GetRequestId())
	if pack == nil {
		s.hub.Count(Name + ".ignored.tool_result")
		return &emptypb.Empty{}, nil
	}
	if size := proto.Size(m); size > wire.DefaultMaxMessageBytes {
		// No agent could be told it. The caller is not to wait for what comes instead.
		s.hub.Count(Name + ".refused.too_large")
		f := core.NewFault(core.CodeTooLarge, "the result has %d bytes, a message may have %d: ask for less", size, wire.DefaultMaxMessageBytes)
		_ = pack.AnswerTool(m.GetRequestId(), nil, f)
		return nil, grpcstatus.Error(codes.ResourceExhausted, f.Message)
	}
	output, fault := s.resultOf(m)
	_ = pack.AnswerTool(m.GetRequestId(), output, fault) // the hub has told the caller, or counted that nobody waits
	return &emptypb.Empty{}, nil
}

// resultOf is what a pack answers: its output, or why there is none.
func (s *PackService) resultOf(m *pb.ExecuteToolResponse) ([]byte, *core.Fault) {
	switch r := m.GetResult().(type) {
	case *pb.ExecuteToolResponse_OutputJson:
		return []byte(r.OutputJson), nil
	case *pb.ExecuteToolResponse_Error:
		return nil, core.NewFault(core.CodeInternal, "%s", wire.CutText(r.Error, maxErrorBytes))
	}
	s.hub.Count(Name + ".refused.unset_result")
	return nil, core.NewFault(core.CodeInternal, "Empty result from pack")
}

// maxErrorBytes is how much of a pack's error is passed on.
const maxErrorBytes = 64 << 10
