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
	who    func(context.Context) core.Principal
}

// NewPackService returns a service that passes each registration to accept, which turns it
// into a connection for [ServePack] and returns the status of the stream. who returns the
// principal of a call; nil where nobody authenticates.
func NewPackService(h *hub.Hub, accept func(*pb.PackManifest, pb.PackService_RegisterServer) error, who func(context.Context) core.Principal) *PackService {
	if who == nil {
		who = func(context.Context) core.Principal { return core.Principal{} }
	}
	return &PackService{hub: h, accept: accept, who: who}
}

// Register implements PackService.
func (s *PackService) Register(m *pb.PackManifest, stream pb.PackService_RegisterServer) error {
	return s.accept(m, stream)
}

// MaxResultBytes is the largest ToolResult that the transport has to accept. One above
// 4 MiB is refused, but the hub can tell the caller at once; of one that the transport
// refuses it never learns, and the call times out.
const MaxResultBytes = 4 * wire.DefaultMaxMessageBytes

// ToolResult implements PackService. It returns OK for every result that fits into a
// message: existing packs exit on an error. Only the hub and the
// pack know the id of a call; from another principal than that of the pack it is refused all the
// same.
func (s *PackService) ToolResult(ctx context.Context, m *pb.ExecuteToolResponse) (*emptypb.Empty, error) {
	pack := s.hub.Provider(m.GetRequestId())
	if pack == nil {
		s.hub.Count(Name + ".ignored.tool_result")
		return &emptypb.Empty{}, nil
	}
	if owner := pack.Identity().Principal; owner.Authenticated && s.who(ctx).ID != owner.ID {
		s.hub.Count(Name + ".refused.tool_result")
		return nil, grpcstatus.Error(codes.PermissionDenied, "the call is for a pack of somebody else: answer with the credential that the pack registered with")
	}
	if size := proto.Size(m); size > wire.DefaultMaxMessageBytes {
		// It fits into no message to an agent. The caller gets an error now.
		s.hub.Count(Name + ".refused.too_large")
		f := core.NewFault(core.CodeTooLarge, "the result has %d bytes, a message may have %d: ask for less", size, wire.DefaultMaxMessageBytes)
		_ = pack.AnswerTool(m.GetRequestId(), nil, f)
		return nil, grpcstatus.Error(codes.ResourceExhausted, f.Message)
	}
	output, fault := s.resultOf(m)
	_ = pack.AnswerTool(m.GetRequestId(), output, fault) // an error means that nobody waits: the hub counts it
	return &emptypb.Empty{}, nil
}

// resultOf returns the output of a call, or its fault.
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

// maxErrorBytes is the most of a pack's error that is passed on.
const maxErrorBytes = 64 << 10
