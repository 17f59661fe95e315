package conversation

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// clientConn is the stream of one reader.
type clientConn = link.Conn[*struct{}, *pb.ClientStreamEvent]

// StreamEvents implements the service: it tells a conversation from behind
// since_event_id, then as it goes on. Without since_event_id it tells the history as
// events, then the caller's latest message and what follows in full. One that reads
// slowly reads on from the journal; one that takes nothing at all is closed with
// RESOURCE_EXHAUSTED and comes back with the last id that it has.
func (s *Service) StreamEvents(r *pb.StreamEventsRequest, stream pb.ClientService_StreamEventsServer) error {
	p, err := s.opts.Principal(stream.Context())
	if err != nil {
		return err
	}
	if err := checkKey(r.GetConversationKey()); err != nil {
		return err
	}
	from, err := core.ParsePlace(r.GetSinceEventId())
	if err != nil {
		return errInvalid("invalid since_event_id: " + core.AsFault(err).Message)
	}
	reader := &reader{service: s, session: s.hub.Connect(s.peer(p)), principal: p, key: r.GetConversationKey(), from: from}
	defer reader.session.Close(nil)
	// Before the headers are sent: from then on the client is put questions, and hears
	// what happens as it happens.
	reader.look("")
	if from.Task == "" {
		if err := reader.recall(stream.Context()); err != nil {
			return errFault(err)
		}
	}
	return s.accept(stream, func(ctx context.Context, conn clientConn) link.Reason { return s.follow(ctx, conn, reader) })
}

// follow holds the stream of a reader until it ends, and returns why.
func (s *Service) follow(ctx context.Context, conn clientConn, r *reader) link.Reason {
	r.link = link.New(conn, s.opts.Link)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pump sync.WaitGroup
	pump.Go(func() {
		if err := r.read(ctx); err != nil && ctx.Err() == nil {
			r.link.Close(*wire.ReasonOf(err))
		}
	})
	pump.Go(func() { r.attend(ctx) })
	reason := r.link.Run(ctx, func(context.Context, *struct{}) error { return nil }, nil)
	cancel()
	pump.Wait()
	return reason
}

// reader is one stream of a conversation.
type reader struct {
	service   *Service
	principal core.Principal
	key       string
	from      core.Place
	link      *link.Link[*struct{}, *pb.ClientStreamEvent]
	// session is put questions, and watches the turns that are told apart; with is
	// whose questions, who answers as far as was told.
	session *hub.Session
	with    core.AgentID
	// apart counts the turns that are told apart and have not ended.
	apart atomic.Int32
	// history is told first, then the turns that run are followed.
	history []*pb.ClientStreamEvent
	running []running
}

// read tells the conversation until ctx ends, the link closes or the hub stops.
func (r *reader) read(ctx context.Context) error {
	s := r.service
	if err := r.tellHistory(ctx); err != nil {
		return err
	}
	c, err := s.hub.Conversation(ctx, s.peer(r.principal), core.ThreadID(r.key), r.from)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		p, err := c.Next(ctx)
		switch {
		case err != nil:
			return err
		case p.Gap:
			s.count("gap")
			err = r.say(ctx, gapIn(r.key, p.Task))
		case p.Task != nil:
			err = r.tell(ctx, p)
		}
		if err != nil {
			return err
		}
	}
}

// tell says what happened in a task.
func (r *reader) tell(ctx context.Context, p hub.Passage) error {
	s := r.service
	r.look(p.Task.Agent())
	messages := s.opts.tell(r.key, p.Task, p.Events, s.count)
	for i, m := range messages {
		sent := func() {}
		if i == len(messages)-1 && p.Events[len(p.Events)-1].Body.Kind().Ends() && p.Task.From().ID == r.principal.ID {
			sent = func() { s.unread.remove(p.Task.ID()) }
		}
		if r.apart.Load() > 0 {
			m.EventId = "" // whoever goes on from here would miss how those turns end
		}
		if err := r.link.SendThen(ctx, m, proto.Size(m), sent); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) say(ctx context.Context, m *pb.ClientStreamEvent) error {
	return r.link.Send(ctx, m, proto.Size(m))
}

// gapIn says that something that stood here is no longer kept: of the task, or whole
// tasks.
func gapIn(key string, t *task.Task) *pb.ClientStreamEvent {
	text := "what was said here is no longer kept"
	if t != nil {
		text = "a part of task " + string(t.ID()) + " is no longer kept"
	}
	at := timestamp(time.Now())
	return &pb.ClientStreamEvent{ConversationKey: key, Timestamp: at, Payload: &pb.ClientStreamEvent_Event{Event: &pb.Event{
		ConversationKey: key, Direction: outbound, Author: "hub", Timestamp: at, Type: "gap", Text: &text,
	}}}
}
