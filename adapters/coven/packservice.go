package coven

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/tool"
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
	s := &PackService{hub: h, accept: accept, who: who}
	executionMatter.Answer(h, func(_ context.Context, _ core.Principal, id string) (bool, error) { return h.Provider(id) != nil, nil })
	resultMatter.Answer(h, func(_ context.Context, by core.Principal, r packResult) (bool, error) { return s.answer(by, r) })
	return s
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
// same. The call may come to another hub of the cluster than the stream of the pack.
func (s *PackService) ToolResult(ctx context.Context, m *pb.ExecuteToolResponse) (*emptypb.Empty, error) {
	r, refused := resultOf(m)
	by := s.who(ctx)
	known, err := s.answer(by, r)
	if !known && err == nil {
		known, err = s.answerElsewhere(ctx, by, r)
	}
	switch {
	case err != nil:
		return nil, grpcstatus.Error(codes.PermissionDenied, core.AsFault(err).Message)
	case !known:
		s.hub.Count(Name + ".ignored.tool_result")
	case refused != "":
		s.hub.Count(Name + ".refused." + refused)
	}
	if known && r.Fault != nil && r.Fault.Code == core.CodeTooLarge {
		return nil, grpcstatus.Error(codes.ResourceExhausted, r.Fault.Message)
	}
	return &emptypb.Empty{}, nil
}

// packResult is what a pack answers, as hubs pass it on.
type packResult struct {
	Execution string      `json:"execution"`
	Output    string      `json:"output,omitempty"`
	Fault     *core.Fault `json:"fault,omitempty"`
}

// executionMatter asks whether a hub has given an execution to a pack, resultMatter answers it there.
const (
	executionMatter rpc.Method[string, bool]     = "coven.execution"
	resultMatter    rpc.Method[packResult, bool] = "coven.tool_result"
)

// answer answers a call of a pack whose stream is at this hub; known is false if there is none.
func (s *PackService) answer(by core.Principal, r packResult) (known bool, err error) {
	pack := s.hub.Provider(r.Execution)
	if pack == nil {
		return false, nil
	}
	if owner := pack.Identity().Principal; owner.Authenticated && by.ID != owner.ID {
		s.hub.Count(Name + ".refused.tool_result")
		return true, core.NewFault(core.CodeNotAuthorized, "the call is for a pack of somebody else: answer with the credential that the pack registered with")
	}
	_ = pack.AnswerTool(r.Execution, tool.Result{Output: json.RawMessage(r.Output), Fault: r.Fault}) // an error means that nobody waits: the hub counts it
	return true, nil
}

// answerElsewhere is answer at the other hub that has the stream of the pack.
func (s *PackService) answerElsewhere(ctx context.Context, by core.Principal, r packResult) (known bool, err error) {
	all, _ := executionMatter.AskAll(ctx, s.hub, by, r.Execution)
	for _, a := range all {
		if a.Out {
			known, err = resultMatter.Ask(ctx, s.hub, a.Hub, by, r)
			if f := core.AsFault(err); err != nil && f.Code != core.CodeNotAuthorized {
				return false, nil // that hub is gone, and with it the call
			}
			return known, err
		}
	}
	return false, nil
}

// resultOf returns what a message answers, and what it is counted as if that is not what the pack said.
func resultOf(m *pb.ExecuteToolResponse) (r packResult, refused string) {
	r.Execution = m.GetRequestId()
	if size := proto.Size(m); size > wire.DefaultMaxMessageBytes {
		// It fits into no message to an agent. The caller gets an error now.
		r.Fault = core.NewFault(core.CodeTooLarge, "the result has %d bytes, a message may have %d: ask for less", size, wire.DefaultMaxMessageBytes)
		return r, "too_large"
	}
	switch got := m.GetResult().(type) {
	case *pb.ExecuteToolResponse_OutputJson:
		r.Output = got.OutputJson
	case *pb.ExecuteToolResponse_Error:
		r.Fault = core.NewFault(core.CodeInternal, "%s", wire.CutText(got.Error, maxErrorBytes))
	default:
		r.Fault = core.NewFault(core.CodeInternal, "Empty result from pack")
		return r, "unset_result"
	}
	return r, ""
}

// maxErrorBytes is the most of a pack's error that is passed on.
const maxErrorBytes = 64 << 10
