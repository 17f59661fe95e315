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

// person is a program of a person's: a client of ClientService over gRPC.
type person struct {
	wire.ClientServiceClient
	t     *testing.T
	token string
}

// as is the person with a token.
func (p *person) as(token string) *person { return &person{p.ClientServiceClient, p.t, token} }

// context is what a call of the person's has, until it takes too long.
func (p *person) context() (context.Context, context.CancelFunc) {
	ctx := p.t.Context()
	if p.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+p.token)
	}
	return context.WithTimeout(ctx, watchdog)
}

// arrive connects a person to the gRPC address of a hub.
func arrive(t *testing.T, addr string) *person {
	t.Helper()
	cc, err := grpcserver.Dial(t.Context(), addr, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return &person{wire.NewClientServiceClient(cc), t, ""}
}

// says sends a message and returns its id. Each has a key of its own.
func (p *person) says(conversation, content string, files ...*wire.FileAttachment) string {
	p.t.Helper()
	ctx, cancel := p.context()
	defer cancel()
	got, err := p.SendMessage(ctx, &wire.ClientSendMessageRequest{
		ConversationKey: conversation, Content: content, Attachments: files, IdempotencyKey: conversation + "/" + strings.Fields(content)[1],
	})
	if err != nil || got.GetStatus() != "accepted" || got.GetMessageId() == "" {
		p.t.Fatalf("saying %.40q: got %v and %v, want it accepted under an id", content, got, err)
	}
	return got.GetMessageId()
}

// listens begins to hear a conversation from behind an event; "" is from where the
// hub thinks right. The headers have come when it returns.
func (p *person) listens(conversation, since string) *ear {
	p.t.Helper()
	ctx, cancel := p.context()
	r := &wire.StreamEventsRequest{ConversationKey: conversation}
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
	e := &ear{t: p.t, stream: stream, stop: cancel}
	p.t.Cleanup(e.leaves)
	return e
}

// ear is a stream of events.
type ear struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[wire.ClientStreamEvent]
	stop   context.CancelFunc
	once   sync.Once
	heard  []*wire.ClientStreamEvent
}

// hears reads until done says so of an event, and returns what came.
func (e *ear) hears(done func(*wire.ClientStreamEvent) bool) []*wire.ClientStreamEvent {
	e.t.Helper()
	from := len(e.heard)
	for {
		m, err := e.stream.Recv()
		if err != nil {
			e.t.Fatalf("the stream ended with %v after %v", err, inWords(e.heard[from:]))
		}
		e.heard = append(e.heard, m)
		if done(m) {
			return e.heard[from:]
		}
	}
}

// leaves ends the stream without a word.
func (e *ear) leaves() {
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

// textUntil is done once the pieces of text have made up to what was wanted.
func textUntil(want string) func(*wire.ClientStreamEvent) bool {
	var got strings.Builder
	return func(m *wire.ClientStreamEvent) bool {
		got.WriteString(m.GetText().GetContent())
		return strings.HasSuffix(got.String(), want)
	}
}

// inWords tells events in words: "asked: hello", "text: hi", "done: hi". Pieces of
// text in a row are one.
func inWords(events []*wire.ClientStreamEvent) []string {
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
			out = append(out, remembered(p.Event))
		default:
			out = append(out, m.String())
		}
	}
	return out
}

// remembered tells an event of a ledger in words.
func remembered(e *wire.Event) string {
	if e.GetType() == "message" && e.GetDirection() == "inbound_to_agent" {
		return "asked: " + e.GetText()
	}
	return e.GetType() + ": " + e.GetText()
}

// recalls returns a conversation as it is remembered, in pages of so many events.
func (p *person) recalls(conversation string, limit int32) []*wire.Event {
	p.t.Helper()
	ctx, cancel := p.context()
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

// inOrder fails unless every id is greater than the one before.
func inOrder(t *testing.T, events []*wire.Event) {
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
