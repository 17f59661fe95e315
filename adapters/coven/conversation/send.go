package conversation

import (
	"context"
	"crypto/sha256"
	"errors"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// What SendMessage answers.
const (
	statusAccepted  = "accepted"
	statusDuplicate = "duplicate"
)

// maxIdempotencyKey bounds the key of a message, in bytes.
const maxIdempotencyKey = 100

// SendMessage implements the service: it opens a task in the thread of the
// conversation and returns at once. A message that comes again within the time that
// the service remembers is answered with the id of the first.
func (s *Service) SendMessage(ctx context.Context, r *pb.ClientSendMessageRequest) (*pb.ClientSendMessageResponse, error) {
	p, err := s.opts.Principal(ctx)
	switch {
	case err != nil:
		return nil, err
	case r.GetIdempotencyKey() == "":
		return nil, errInvalid("idempotency_key required")
	case len(r.GetIdempotencyKey()) > maxIdempotencyKey:
		return nil, errInvalid("idempotency_key too long")
	}
	if err := checkKey(r.GetConversationKey()); err != nil {
		return nil, err
	}
	if r.GetContent() == "" {
		return nil, errInvalid("content required")
	}
	to, err := s.address(ctx, p, r.GetConversationKey())
	if err != nil {
		return nil, errFault(err)
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return nil, errFault(err)
	}
	id, known, err := s.sent.once(p.ID, r.GetIdempotencyKey(), sha256.Sum256(bytes), func() (string, error) {
		return s.send(p, to, r)
	})
	switch {
	case errors.Is(err, &core.Fault{Code: core.CodeUnknownAgent}):
		return nil, grpcstatus.Error(codes.NotFound, "agent not found")
	case errors.Is(err, &core.Fault{Code: core.CodeUnreachable}):
		return nil, grpcstatus.Error(codes.Unavailable, "agent unavailable")
	case err != nil:
		return nil, errFault(err)
	case known:
		s.count("duplicate.message")
		return &pb.ClientSendMessageResponse{Status: statusDuplicate, MessageId: id}, nil
	}
	return &pb.ClientSendMessageResponse{Status: statusAccepted, MessageId: id}, nil
}

// checkKey says what cannot be a conversation.
func checkKey(key string) error {
	switch {
	case key == "":
		return errInvalid("conversation_key required")
	case len(key) > core.MaxIDBytes:
		return grpcstatus.Errorf(codes.InvalidArgument, "conversation_key too long: use at most %d bytes", core.MaxIDBytes)
	}
	return nil
}

// send opens the task and returns the id of the event that the message is.
func (s *Service) send(p core.Principal, to core.Address, r *pb.ClientSendMessageRequest) (string, error) {
	req := core.Request{Intent: core.IntentAsk, To: to, Thread: core.ThreadID(r.GetConversationKey()), Content: r.GetContent()}
	for _, f := range r.GetAttachments() {
		req.Attachments = append(req.Attachments, core.File{Name: f.GetFilename(), MediaType: f.GetMimeType(), Data: f.GetData()})
	}
	as := s.hub.Connect(s.peer(p))
	defer as.Close(nil)
	t, err := as.Open(req, hub.Opening{Keep: true, Unwatched: true})
	if err != nil {
		return "", err
	}
	s.unread.add(t.ID())
	return core.PlaceBehind(t.ID(), t.Events()[0]).String(), nil
}

// address tells whom a message of a conversation is for: the agent of that id, else
// who answered there last, else, where nobody did, whom the key addresses.
func (s *Service) address(ctx context.Context, p core.Principal, key string) (core.Address, error) {
	agent := core.ToAgent(core.AgentID(key))
	if _, here := s.hub.Reach(core.AgentID(key)); here {
		return agent, nil
	}
	turns, err := s.hub.LatestTurns(ctx, p, core.ThreadID(key), lookBack)
	if err != nil {
		return core.Address{}, err
	}
	for i := len(turns) - 1; i >= 0; i-- {
		if id := turns[i].Agent(); id != "" {
			return core.ToAgent(id), nil
		}
	}
	if to, err := core.ParseAddress(key); err == nil {
		switch to.Reach() {
		case core.ReachCapability, core.ReachDomain, core.ReachAny:
			return to, nil
		}
	}
	return agent, nil
}

// lookBack is how many turns are looked at to find who answered last.
const lookBack = 8
