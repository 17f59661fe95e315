package conversation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// The status of a message in the answer of SendMessage.
const (
	statusAccepted  = "accepted"
	statusDuplicate = "duplicate"
)

// maxIdempotencyKey bounds the key of a message, in bytes.
const maxIdempotencyKey = 100

// SendMessage implements the service: it opens a task in the thread of the conversation
// and returns at once. A message that is sent again within RememberFor is answered with
// the id of the first.
func (s *Service) SendMessage(ctx context.Context, r *pb.ClientSendMessageRequest) (*pb.ClientSendMessageResponse, error) {
	return framed(ctx, s, r, func(frames *frame.Ring) (*pb.ClientSendMessageResponse, error) { return s.sendMessage(ctx, r, frames) })
}

func (s *Service) sendMessage(ctx context.Context, r *pb.ClientSendMessageRequest, frames *frame.Ring) (*pb.ClientSendMessageResponse, error) {
	p, err := s.opts.Principal(ctx)
	switch {
	case err != nil:
		return nil, err
	case r.GetIdempotencyKey() == "":
		return nil, invalidArgument("idempotency_key required")
	case len(r.GetIdempotencyKey()) > maxIdempotencyKey:
		return nil, invalidArgument("idempotency_key too long")
	}
	if err := checkKey(r.GetConversationKey()); err != nil {
		return nil, err
	}
	if r.GetContent() == "" {
		return nil, invalidArgument("content required")
	}
	to, err := s.address(ctx, p, r.GetConversationKey())
	if err != nil {
		return nil, statusError(err)
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return nil, statusError(err)
	}
	sent := hub.Repeatable{Owner: p.ID, Name: r.GetIdempotencyKey(), Content: sha256.Sum256(bytes)}
	id, known, err := s.sent.Once(ctx, sent, func(key string) (core.TaskID, error) {
		return s.send(p, to, r, hub.OpenOptions{Keep: true, Unwatched: true, Trace: s.opts.Trace(ctx), Key: key}, frames)
	})
	switch {
	case errors.Is(err, hub.ErrOtherContent):
		return nil, invalidArgument(fmt.Sprintf("idempotency_key was used for another message less than %s ago: choose a new one for each message", s.opts.RememberFor))
	case errors.Is(err, &core.Fault{Code: core.CodeUnknownAgent}):
		return nil, grpcstatus.Error(codes.NotFound, "agent not found")
	case errors.Is(err, &core.Fault{Code: core.CodeUnreachable}):
		return nil, grpcstatus.Error(codes.Unavailable, "agent unavailable")
	case err != nil:
		return nil, statusError(err)
	case known:
		s.count("duplicate.message")
		return &pb.ClientSendMessageResponse{Status: statusDuplicate, MessageId: messageID(id)}, nil
	}
	return &pb.ClientSendMessageResponse{Status: statusAccepted, MessageId: messageID(id)}, nil
}

// checkKey returns an error for a key that no conversation can have.
func checkKey(key string) error {
	switch {
	case key == "":
		return invalidArgument("conversation_key required")
	case len(key) > core.MaxIDBytes:
		return grpcstatus.Errorf(codes.InvalidArgument, "conversation_key too long: use at most %d bytes", core.MaxIDBytes)
	}
	return nil
}

// messageID returns the id of the message that has opened a task: that of the first event.
func messageID(id core.TaskID) string {
	return core.PlaceAfter(id, core.Event{Seq: 1, Epoch: 1}).String()
}

// send opens the task.
func (s *Service) send(p core.Principal, to core.Address, r *pb.ClientSendMessageRequest, o hub.OpenOptions, frames *frame.Ring) (core.TaskID, error) {
	req := core.Request{
		Intent: core.IntentAsk, To: to, Thread: core.ThreadID(r.GetConversationKey()), Content: r.GetContent(), Attachments: wire.FilesOf(r.GetAttachments()),
	}
	session := s.connect(p, frames)
	defer session.Close(nil)
	t, err := session.Open(req, o)
	if err != nil {
		return "", err
	}
	s.unread.add(t.ID())
	return t.ID(), nil
}

// address returns the recipient of a message in a conversation: the agent whose id is the
// key, else the agent that answered there last, else the address that the key is.
func (s *Service) address(ctx context.Context, p core.Principal, key string) (core.Address, error) {
	agent := core.ToAgent(core.AgentID(key))
	if _, here := s.hub.Reach(p, core.AgentID(key)); here {
		return agent, nil
	}
	turns, err := s.hub.LatestTurns(ctx, p, core.ThreadID(key), latestTurns)
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

// latestTurns is how many turns are searched for the agent that answered last.
const latestTurns = 8
