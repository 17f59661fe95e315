package conversation_test

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// eventStream is what the handler sees of a stream of events.
type eventStream struct {
	grpc.ServerStreamingServer[pb.ClientStreamEvent]
	ctx    context.Context //nolint:containedctx // it is that of the stream
	server *coretest.End[*struct{}, *pb.ClientStreamEvent]
	client *coretest.End[*pb.ClientStreamEvent, *struct{}]
	opened chan struct{} // the headers are sent
	goOn   chan struct{} // the stream may be served
}

func (s *eventStream) Context() context.Context { return s.ctx }

// Whoever has the headers of its stream hears what happens from then on as it
// happens, however late the hub comes to serving the stream, and whoever else has
// heard it by then.
func TestAClientThatHasItsHeadersHearsAnswersInFull(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	h := coretest.NewHub(t, hub.Options{})
	agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "guide"}})
	defer agent.Close(nil)
	if err := agent.Join(core.Card{ID: "guide", Features: core.FeatureStreaming}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	service := conversation.NewService(h, conversation.Options{}, func(s pb.ClientService_StreamEventsServer, serve conversation.ServeStream) error {
		stream := s.(*eventStream)
		close(stream.opened)
		select {
		case <-stream.goOn:
		case <-ctx.Done():
		}
		serve(ctx, stream.server)
		return nil
	})
	listen := func() *eventStream {
		server, client := coretest.Pipe[*struct{}, *pb.ClientStreamEvent](0)
		s := &eventStream{ctx: ctx, server: server, client: client, opened: make(chan struct{}), goOn: make(chan struct{})}
		streams.Go(func() {
			if err := service.StreamEvents(&pb.StreamEventsRequest{ConversationKey: "guide"}, s); err != nil {
				t.Error(err)
			}
		})
		<-s.opened
		return s
	}
	hears := func(s *eventStream) {
		t.Helper()
		for {
			m, err := s.client.Receive(ctx)
			if err != nil {
				t.Fatalf("the stream ended with %v, want done", err)
			}
			if e := m.GetEvent(); e.GetType() == "message" && e.GetDirection() == "outbound_from_agent" {
				t.Fatalf("got the answer as history: %v, want it in full", m)
			}
			if m.GetDone() != nil {
				return
			}
		}
	}
	prompt, late := listen(), listen()
	close(prompt.goOn)
	_, err := service.SendMessage(ctx, &pb.ClientSendMessageRequest{ConversationKey: "guide", Content: "hello", IdempotencyKey: "1"})
	if err != nil {
		t.Fatal(err)
	}
	given, err := agent.Next(ctx)
	if err != nil || given.Task == nil {
		t.Fatalf("got %v and %v, want the message", given, err)
	}
	if err := agent.Report(given.Task.ID(), core.Done{Text: "good day"}, nil); err != nil {
		t.Fatal(err)
	}
	hears(prompt)
	close(late.goOn)
	hears(late)
	for _, s := range []*eventStream{prompt, late} {
		s.client.Close(link.Reason{Cause: link.Normal})
	}
}
