package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// covenClient calls ClientService over gRPC.
type covenClient struct {
	wire.ClientServiceClient
	t     *testing.T
	token string
}

// withToken returns a copy of the client that sends the token.
func (p *covenClient) withToken(token string) *covenClient {
	return &covenClient{p.ClientServiceClient, p.t, token}
}

// callContext returns the context of one call.
func (p *covenClient) callContext() (context.Context, context.CancelFunc) {
	ctx := p.t.Context()
	if p.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+p.token)
	}
	return context.WithTimeout(ctx, watchdog)
}

// connectCovenClient connects to the gRPC address of a hub.
func connectCovenClient(t *testing.T, addr string) *covenClient {
	t.Helper()
	cc, err := grpcserver.Dial(t.Context(), addr, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return &covenClient{wire.NewClientServiceClient(cc), t, ""}
}

// send sends a message and returns its id.
func (p *covenClient) send(recording, content string, files ...*wire.FileAttachment) string {
	p.t.Helper()
	ctx, cancel := p.callContext()
	defer cancel()
	got, err := p.SendMessage(ctx, &wire.ClientSendMessageRequest{
		ConversationKey: recording, Content: content, Attachments: files, IdempotencyKey: recording + "/" + strings.Fields(content)[1],
	})
	if err != nil || got.GetStatus() != "accepted" || got.GetMessageId() == "" {
		p.t.Fatalf("saying %.40q: got %v and %v, want it accepted under an id", content, got, err)
	}
	return got.GetMessageId()
}

// open opens the stream of a conversation after the event since; if that is empty, where the hub
// begins by default. It returns once the headers have arrived.
func (p *covenClient) open(recording, since string) *eventStream {
	p.t.Helper()
	ctx, cancel := p.callContext()
	r := &wire.StreamEventsRequest{ConversationKey: recording}
	if since != "" {
		r.SinceEventId = &since
	}
	stream, err := p.StreamEvents(ctx, r)
	if err == nil {
		_, err = stream.Header()
	}
	if err != nil {
		cancel()
		p.t.Fatal(err)
	}
	e := &eventStream{t: p.t, stream: stream, stop: cancel}
	p.t.Cleanup(e.close)
	return e
}

// eventStream is a stream of the events of a conversation.
type eventStream struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[wire.ClientStreamEvent]
	stop   context.CancelFunc
	once   sync.Once
	events []*wire.ClientStreamEvent
}

// readUntil reads until done reports true, and returns the events it read.
func (e *eventStream) readUntil(done func(*wire.ClientStreamEvent) bool) []*wire.ClientStreamEvent {
	e.t.Helper()
	from := len(e.events)
	for {
		m, err := e.stream.Recv()
		if err != nil {
			e.t.Fatalf("the stream ended with %v after %v", err, describe(e.events[from:]))
		}
		e.events = append(e.events, m)
		if done(m) {
			return e.events[from:]
		}
	}
}

// close cancels the stream.
func (e *eventStream) close() {
	e.once.Do(func() {
		e.stop()
		for {
			if _, err := e.stream.Recv(); err != nil {
				return
			}
		}
	})
}

func isDone(m *wire.ClientStreamEvent) bool { return m.GetDone() != nil }

// textUntil reports true once the chunks of text end in want.
func textUntil(want string) func(*wire.ClientStreamEvent) bool {
	var got strings.Builder
	return func(m *wire.ClientStreamEvent) bool {
		got.WriteString(m.GetText().GetContent())
		return strings.HasSuffix(got.String(), want)
	}
}

// describe renders events as text: "asked: hello", "text: hi", "done: hi". Consecutive chunks of
// text are one.
func describe(events []*wire.ClientStreamEvent) []string {
	var out []string
	for _, m := range events {
		switch p := m.GetPayload().(type) {
		case *wire.ClientStreamEvent_Text:
			if n := len(out); n > 0 && strings.HasPrefix(out[n-1], "text: ") {
				out[n-1] += p.Text.GetContent()
				continue
			}
			out = append(out, "text: "+p.Text.GetContent())
		case *wire.ClientStreamEvent_Thinking:
			out = append(out, "thinking: "+p.Thinking.GetContent())
		case *wire.ClientStreamEvent_Done:
			out = append(out, "done: "+p.Done.GetFullResponse())
		case *wire.ClientStreamEvent_Error:
			out = append(out, "error: "+p.Error.GetMessage())
		case *wire.ClientStreamEvent_Event:
			out = append(out, describeStored(p.Event))
		default:
			out = append(out, m.String())
		}
	}
	return out
}

// describeStored renders a stored event.
func describeStored(e *wire.Event) string {
	if e.GetType() == "message" && e.GetDirection() == "inbound_to_agent" {
		return "asked: " + e.GetText()
	}
	return e.GetType() + ": " + e.GetText()
}

// history returns the stored events of a conversation, read in pages of limit events.
func (p *covenClient) history(conversation string, limit int32) []*wire.Event {
	p.t.Helper()
	ctx, cancel := p.callContext()
	defer cancel()
	var all []*wire.Event
	r := &wire.GetEventsRequest{ConversationKey: conversation, Limit: &limit}
	for {
		page, err := p.GetEvents(ctx, r)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, page.GetEvents()...)
		if !page.GetHasMore() {
			return all
		}
		if len(page.GetEvents()) == 0 || page.NextCursor == nil {
			p.t.Fatalf("got %v, want events and where the next page begins", page)
		}
		r.Cursor = page.NextCursor
	}
}

// wantOrdered fails the test unless the ids increase.
func wantOrdered(t *testing.T, events []*wire.Event) {
	t.Helper()
	for i := 1; i < len(events); i++ {
		if events[i].GetId() <= events[i-1].GetId() {
			t.Errorf("got %q behind %q, want a greater id", events[i].GetId(), events[i-1].GetId())
		}
		at, err := time.Parse(time.RFC3339, events[i].GetTimestamp())
		if err != nil || at.Location() != time.UTC {
			t.Errorf("got the time %q (%v), want RFC 3339 in UTC", events[i].GetTimestamp(), err)
		}
	}
}
