package conversation_test

import (
	"context"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// A client that has the headers of its stream gets later answers as live events, even if
// the hub serves the stream only after the answer, and another stream has sent it by then.
func TestAClientThatHasItsHeadersGetsLaterAnswersLive(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	h := coretest.NewHub(t, hub.Options{})
	a := joinAgent(t, h, "guide")
	service := conversation.NewService(h, conversation.Options{}, func(s pb.ClientService_StreamEventsServer, serveStream conversation.ServeStream) error {
		stream := s.(*eventStream)
		close(stream.opened)
		select {
		case <-stream.served:
		case <-ctx.Done():
		}
		return serve(s, serveStream)
	})
	listen := func() *eventStream {
		stream := newStream(ctx)
		streams.Go(func() {
			if err := service.StreamEvents(&pb.StreamEventsRequest{ConversationKey: "guide"}, stream); err != nil {
				t.Error(err)
			}
		})
		<-stream.opened
		return stream
	}
	expectLive := func(s *eventStream) {
		t.Helper()
		for {
			m, err := s.client.Receive(ctx)
			if err != nil {
				t.Fatalf("the stream ended with %v, want done", err)
			}
			if e := m.GetEvent(); e.GetType() == "message" && e.GetDirection() == "outbound_from_agent" {
				t.Fatalf("got the answer as history: %v, want it live", m)
			}
			if m.GetDone() != nil {
				return
			}
		}
	}
	prompt, late := listen(), listen()
	close(prompt.served)
	sendMessage(t, service, "guide", "hello", "1")
	a.report(core.Done{Text: "good day"})
	expectLive(prompt)
	close(late.served)
	expectLive(late)
	for _, s := range []*eventStream{prompt, late} {
		s.client.Close(link.Reason{Cause: link.Normal})
	}
}
