package conversation

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// Options are the settings of a [Service]. The zero value of each field means the default
// named beside it.
type Options struct {
	// Principal returns the caller, or an error with a gRPC status. Nil is for an open
	// hub: every caller is "client" and may use every conversation.
	Principal func(context.Context) (core.Principal, error)
	// Trace returns the trace context of a call. Nil is for none.
	Trace func(context.Context) core.Trace
	// Deadline is how long an answer may take: 600 s.
	Deadline time.Duration
	// MaxMessageBytes is the largest message that is sent, encoded: 4 MiB.
	MaxMessageBytes int
	// RememberFor is how long a message that is sent again is recognised, and Remember
	// how many are: 5 min and 100,000.
	RememberFor time.Duration
	Remember    int
	// Frames returns the frames of a new call; nil keeps none.
	Frames func() *frame.Ring
}

func (o Options) withDefaults() Options {
	if o.Principal == nil {
		o.Principal = func(context.Context) (core.Principal, error) {
			return core.Principal{ID: "client", Dialect: wire.Name, Operator: true}, nil
		}
	}
	if o.Trace == nil {
		o.Trace = func(context.Context) core.Trace { return core.Trace{} }
	}
	if o.Frames == nil {
		o.Frames = func() *frame.Ring { return nil }
	}
	o.Deadline = cmp.Or(o.Deadline, wire.DefaultDeadline)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, wire.DefaultMaxMessageBytes)
	o.RememberFor = cmp.Or(o.RememberFor, 5*time.Minute)
	o.Remember = cmp.Or(o.Remember, 100_000)
	return o
}

// Service is the gRPC service coven.ClientService. It is safe for concurrent use.
type Service struct {
	pb.UnimplementedClientServiceServer
	hub    *hub.Hub
	opts   Options
	accept func(pb.ClientService_StreamEventsServer, ServeStream) error
	sent   *hub.Keys
	unread *unread
}

// ServeStream streams a conversation to one client over a connection until that ends.
type ServeStream func(context.Context, link.Conn[*struct{}, *pb.ClientStreamEvent]) link.Reason

// NewService returns a service that passes each stream of events to accept, which turns
// it into a connection, calls serve with a context that outlives the stream, and returns
// the status of the reason. accept sends the response headers at once: existing clients
// wait for them.
func NewService(h *hub.Hub, opts Options, accept func(s pb.ClientService_StreamEventsServer, serve ServeStream) error) *Service {
	opts = opts.withDefaults()
	s := &Service{
		hub: h, opts: opts, accept: accept, sent: h.NewKeys(wire.Name, hub.KeysOptions{All: opts.Remember, Age: opts.RememberFor}), unread: newUnread(opts.RememberFor),
	}
	unreadMatter.Answer(h, func(ctx context.Context, by core.Principal, id core.TaskID) (bool, error) {
		if !s.unread.has(id) {
			return false, nil
		}
		t, err := h.Task(ctx, by, id)
		return err == nil && t.From().ID == by.ID && s.unread.take(id), err
	})
	return s
}

func invalidArgument(text string) error { return grpcstatus.Error(codes.InvalidArgument, text) }

// statusError returns a fault of the hub as an error with a gRPC status.
func statusError(err error) error {
	f := core.AsFault(err)
	return grpcstatus.Error(wire.StatusOf(f.Code), f.Message)
}

func (s *Service) count(what string) { s.hub.Count(wire.Name + "." + what) }

// connect opens the session of a call, whose frames may be nil.
func (s *Service) connect(p core.Principal, frames *frame.Ring) *hub.Session {
	return s.hub.Connect(s.identity(p, frames))
}

func (s *Service) identity(p core.Principal, frames *frame.Ring) hub.Identity {
	return hub.Identity{Principal: p, Dialect: wire.Name, Deadline: s.opts.Deadline, FixedDeadline: true, Keep: true, Frames: frames}
}

// framed has a call handled whose frames are kept: the message of the client, and the one that answers
// it.
func framed[In, Out proto.Message](ctx context.Context, s *Service, m In, handle func(frames *frame.Ring) (Out, error)) (Out, error) {
	frames := s.opts.Frames()
	if frames == nil {
		return handle(nil)
	}
	defer frames.Close()
	frames.Receive(m)
	defer frames.Received()
	out, err := handle(frames)
	if err == nil {
		frames.Queued(frame.Reading(ctx), out)
	}
	return out, err
}

// GetMe implements the service.
func (s *Service) GetMe(ctx context.Context, _ *emptypb.Empty) (*pb.MeResponse, error) {
	p, err := s.opts.Principal(ctx)
	if err != nil {
		return nil, err
	}
	role := "member"
	if s.hub.MayOperate(p) {
		role = "admin"
	}
	return &pb.MeResponse{
		PrincipalId: wire.ValidUTF8(p.ID), PrincipalType: "client", DisplayName: wire.ValidUTF8(p.ID), Status: statusApproved, Roles: []string{role},
	}, nil
}

const statusApproved = "approved"

// RegisterAgent implements the service. An open hub trusts the id that an agent claims,
// so nothing is stored.
func (s *Service) RegisterAgent(ctx context.Context, r *pb.RegisterAgentRequest) (*pb.RegisterAgentResponse, error) {
	if _, err := s.opts.Principal(ctx); err != nil {
		return nil, err
	}
	if err := checkRegistration(r.GetDisplayName(), r.GetFingerprint()); err != nil {
		return nil, err
	}
	return &pb.RegisterAgentResponse{PrincipalId: r.GetDisplayName(), Status: statusApproved}, nil
}

// RegisterClient implements the service, as RegisterAgent does.
func (s *Service) RegisterClient(ctx context.Context, r *pb.RegisterClientRequest) (*pb.RegisterClientResponse, error) {
	p, err := s.opts.Principal(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkRegistration(r.GetDisplayName(), r.GetFingerprint()); err != nil {
		return nil, err
	}
	return &pb.RegisterClientResponse{PrincipalId: wire.ValidUTF8(p.ID), Status: statusApproved}, nil
}

// checkRegistration returns the errors of the existing gateway for names and fingerprints
// that cannot be registered.
func checkRegistration(name, fingerprint string) error {
	switch {
	case name == "":
		return invalidArgument("display_name required")
	case strings.TrimSpace(name) == "":
		return invalidArgument("display_name cannot be only whitespace")
	case len(name) > 100:
		return invalidArgument("display_name exceeds 100 characters")
	case strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r) && !strings.ContainsRune("-_.", r)
	}):
		return invalidArgument("display_name contains invalid characters (allowed: alphanumeric, hyphens, underscores, periods, spaces)")
	case fingerprint == "":
		return invalidArgument("fingerprint required")
	case len(fingerprint) != 64:
		return invalidArgument("fingerprint must be 64 hex characters (SHA256)")
	}
	if _, err := hex.DecodeString(fingerprint); err != nil {
		return invalidArgument("fingerprint must be valid hex characters")
	}
	return nil
}

// ApproveTool implements the service. Where several requests of the agent have a call of
// the id, the decision is for the one that has waited longest.
func (s *Service) ApproveTool(ctx context.Context, r *pb.ApproveToolRequest) (*pb.ApproveToolResponse, error) {
	p, err := s.opts.Principal(ctx)
	switch {
	case err != nil:
		return nil, err
	case r.GetAgentId() == "":
		return nil, invalidArgument("agent_id required")
	case r.GetToolId() == "":
		return nil, invalidArgument("tool_id required")
	}
	refuse := func(text string) (*pb.ApproveToolResponse, error) {
		return &pb.ApproveToolResponse{Error: &text}, nil
	}
	if _, here := s.hub.Agent(p, core.AgentID(r.GetAgentId())); !here {
		return refuse("agent not found")
	}
	waiting, _ := s.hub.Approvals(ctx, p)
	i := slices.IndexFunc(waiting, func(a task.PendingApproval) bool {
		return string(a.Agent) == r.GetAgentId() && wire.ValidUTF8(a.ID) == r.GetToolId()
	})
	if i < 0 {
		return refuse("no tool call " + r.GetToolId() + " of this agent waits for a decision")
	}
	return framed(ctx, s, r, func(frames *frame.Ring) (*pb.ApproveToolResponse, error) {
		d := core.ApprovalDecided{ID: waiting[i].ID, Approved: r.GetApproved(), All: r.GetApproveAll()}
		if err := s.hub.Do(ctx, s.identity(p, frames), core.Decide{Task: waiting[i].Task, Decision: d}); err != nil {
			return refuse(core.AsFault(err).Message)
		}
		return &pb.ApproveToolResponse{Success: true}, nil
	})
}
