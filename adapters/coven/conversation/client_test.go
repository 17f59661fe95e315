package conversation_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// eventStream is a stream of events as its handler sees it, with both ends of the
// connection that accept makes of it.
type eventStream struct {
	grpc.ServerStreamingServer[pb.ClientStreamEvent]
	ctx    context.Context //nolint:containedctx // it is that of the stream
	server *coretest.End[*struct{}, *pb.ClientStreamEvent]
	client *coretest.End[*pb.ClientStreamEvent, *struct{}]
	// opened is closed when the headers are sent, by an accept that then waits for served.
	opened, served chan struct{}
}

func (s *eventStream) Context() context.Context { return s.ctx }

func newStream(ctx context.Context) *eventStream {
	server, client := coretest.Pipe[*struct{}, *pb.ClientStreamEvent](0)
	return &eventStream{ctx: ctx, server: server, client: client, opened: make(chan struct{}), served: make(chan struct{})}
}

// serve is the accept function of a service whose streams are eventStreams.
func serve(s pb.ClientService_StreamEventsServer, serveStream conversation.ServeStream) error {
	stream := s.(*eventStream)
	serveStream(stream.ctx, stream.server)
	return nil
}

// agent is an agent whose every event the test reports.
type agent struct {
	t *testing.T
	s *hub.Session
}

func joinAgent(t *testing.T, h *hub.Hub, id core.AgentID) agent {
	t.Helper()
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: string(id)}})
	t.Cleanup(func() { s.Close(nil) })
	if err := s.Join(core.Card{ID: id, Features: core.FeatureStreaming}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	return agent{t, s}
}

// report waits for the next task and reports events of it.
func (a agent) report(bodies ...core.Body) *task.Task {
	a.t.Helper()
	b, err := a.s.Next(a.t.Context())
	if err != nil || b.Task == nil {
		a.t.Fatalf("got %v and %v, want a task", b, err)
	}
	for _, body := range bodies {
		if err := a.s.Report(b.Task.ID(), body, nil); err != nil {
			a.t.Fatal(err)
		}
	}
	return b.Task
}

func sendMessage(t *testing.T, s *conversation.Service, key, content, idempotencyKey string) {
	t.Helper()
	_, err := s.SendMessage(t.Context(), &pb.ClientSendMessageRequest{ConversationKey: key, Content: content, IdempotencyKey: idempotencyKey})
	if err != nil {
		t.Fatal(err)
	}
}

// untilEnd streams a conversation until the end of a task, and returns the messages.
func untilEnd(t *testing.T, s *conversation.Service, key string) []*pb.ClientStreamEvent {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := newStream(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.StreamEvents(&pb.StreamEventsRequest{ConversationKey: key}, stream) }()
	var messages []*pb.ClientStreamEvent
	for {
		m, err := stream.client.Receive(ctx)
		if err != nil {
			t.Fatalf("the stream ended with %v, want the end of the task", err)
		}
		messages = append(messages, m)
		if m.GetDone() == nil && m.GetError() == nil {
			continue
		}
		stream.client.Close(link.Reason{Cause: link.Normal})
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		return messages
	}
}

// history returns all events of a conversation, page by page.
func history(t *testing.T, s *conversation.Service, key string) []*pb.Event {
	t.Helper()
	var all []*pb.Event
	for cursor := ""; ; {
		page, err := s.GetEvents(t.Context(), &pb.GetEventsRequest{ConversationKey: key, Cursor: &cursor})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.GetEvents()...)
		if !page.GetHasMore() {
			return all
		}
		cursor = page.GetNextCursor()
	}
}
