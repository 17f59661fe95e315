package conversation

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// streamConn is the connection of one stream.
type streamConn = link.Conn[*struct{}, *pb.ClientStreamEvent]

// StreamEvents implements the service: it streams a conversation from after
// since_event_id. Without since_event_id it sends the history as events, then the caller's
// latest message and what follows as live events. A slow client reads from the journal;
// one that reads nothing is closed with RESOURCE_EXHAUSTED and resumes from its last id.
func (s *Service) StreamEvents(req *pb.StreamEventsRequest, stream pb.ClientService_StreamEventsServer) error {
	p, err := s.opts.Principal(stream.Context())
	if err != nil {
		return err
	}
	if err := checkKey(req.GetConversationKey()); err != nil {
		return err
	}
	from, err := core.ParsePlace(req.GetSinceEventId())
	if err != nil {
		return invalidArgument("invalid since_event_id: " + core.AsFault(err).Message)
	}
	r := &reader{service: s, session: s.connect(p, nil), principal: p, key: req.GetConversationKey(), from: from}
	defer r.session.Close(nil)
	// Before accept sends the headers: a client that has them gets every later question
	// and every later event live.
	r.watchQuestions("")
	if from.Task == "" {
		if err := r.loadHistory(stream.Context()); err != nil {
			return statusError(err)
		}
	}
	return s.accept(stream, r.serve)
}

// reader is the stream of one client.
type reader struct {
	service   *Service
	principal core.Principal
	key       string
	from      core.Place // where the live events begin
	link      *link.Link[*struct{}, *pb.ClientStreamEvent]
	frames    *frame.Ring     // of the link; nil keeps none
	told      *frame.Delivery // of streamTasks

	session *hub.Session // gets questions, and the events of earlier turns
	agent   core.AgentID // whose questions the session watches

	history []*pb.ClientStreamEvent // sent first
	running []*earlierTurn          // followed next
	earlier atomic.Int32            // how many earlier turns still run
}

// serve holds the stream until it ends, and returns why.
func (r *reader) serve(ctx context.Context, conn streamConn) link.Reason {
	r.frames = r.service.opts.Frames()
	r.told = r.frames.Delivery()
	r.link = link.New(conn, link.Options{Memory: r.service.hub.Memory(), Frames: r.frames})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pump sync.WaitGroup
	pump.Go(func() {
		if err := r.streamTasks(ctx); err != nil && ctx.Err() == nil {
			r.link.Close(*wire.ReasonOf(err))
		}
	})
	pump.Go(func() { r.handleSession(ctx) })
	reason := r.link.Run(ctx, func(context.Context, *struct{}) error { return nil }, nil)
	cancel()
	pump.Wait()
	return reason
}

// streamTasks sends the history, then the conversation from r.from, until ctx ends, the
// link closes or the hub stops.
func (r *reader) streamTasks(ctx context.Context) error {
	s := r.service
	if err := r.sendHistory(ctx); err != nil {
		return err
	}
	c, err := s.hub.ReadThread(ctx, s.identity(r.principal, nil), core.ThreadID(r.key), r.from)
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
			err = r.send(ctx, gapEvent(r.key, p.Task))
		case p.Task != nil:
			err = r.sendEvents(ctx, p.Task, p.Events)
		}
		if err != nil {
			return err
		}
	}
}

// sendEvents sends consecutive events of a task: each by itself where frames are kept.
func (r *reader) sendEvents(ctx context.Context, t *task.Task, events []core.Event) error {
	if r.told == nil {
		return r.sendLive(ctx, t, events)
	}
	defer r.told.End()
	for i := range events {
		r.told.Begin(t.ID(), false, events[i])
		if err := r.sendLive(ctx, t, events[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// sendLive sends consecutive events of a task.
func (r *reader) sendLive(ctx context.Context, t *task.Task, events []core.Event) error {
	r.watchQuestions(t.Agent())
	messages := r.liveMessages(t, events)
	for i, m := range messages {
		sent := func() {}
		if i == len(messages)-1 && events[len(events)-1].Body.Kind().Ends() && t.From().ID == r.principal.ID {
			sent = func() { r.service.unread.remove(t.ID()) }
		}
		if r.earlier.Load() > 0 {
			m.EventId = "" // a client that resumed here would miss the end of the earlier turns
		}
		if err := r.link.SendThen(ctx, m, proto.Size(m), sent); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) send(ctx context.Context, m *pb.ClientStreamEvent) error {
	return r.link.Send(ctx, m, proto.Size(m))
}

// gapEvent reports that a part of the task, or whole tasks, are no longer kept.
func gapEvent(key string, t *task.Task) *pb.ClientStreamEvent {
	text := "what was said here is no longer kept"
	if t != nil {
		text = "a part of task " + string(t.ID()) + " is no longer kept"
	}
	return hubEvent(key, &pb.Event{Type: "gap", Text: &text})
}

// hubEvent returns an event that the hub itself adds to a conversation.
func hubEvent(key string, e *pb.Event) *pb.ClientStreamEvent {
	e.ConversationKey, e.Direction, e.Author, e.Timestamp = key, outbound, "hub", timestamp(time.Now())
	return &pb.ClientStreamEvent{ConversationKey: key, Timestamp: e.Timestamp, Payload: &pb.ClientStreamEvent_Event{Event: e}}
}
