package e2e

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// A client reads nothing while the agent sends 50,000 chunks in its conversation. The agent is not
// slowed, nor is another reader or another conversation, and the client loses nothing.
func TestAStalledClientLosesNothingAndSlowsNobody(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "flood", 16)
	h.startAgent(t, coven.Name, "guide", 1)
	ada, bob := connectCovenClient(t, h.service.Addresses().GRPC), connectCovenClient(t, h.service.Addresses().GRPC)
	deaf := ada.open("flood", "")
	keen := bob.open("flood", "")
	const bursts = 50_000 / burstChunks
	var want []string
	for range bursts {
		key := h.key()
		ada.send("flood", "burst "+key)
		want = append(want, "asked: burst "+key, "text: "+wholeBurst, "done: "+wholeBurst)
		keen.readUntil(isDone)
	}
	key := h.key()
	stream := bob.open("guide", "")
	bob.send("guide", "say "+key)
	stream.readUntil(isDone)

	for range bursts {
		deaf.readUntil(isDone)
	}
	for who, e := range map[string]*eventStream{"the keen reader": keen, "the reader that read nothing": deaf} {
		if got := describe(e.events); !cmp.Equal(want, got) {
			t.Errorf("%s got %d events, %.200q, want %d", who, len(got), got, len(want))
		}
	}
}

// A hub is killed while a client listens. After a restart the conversation has the same ids, and
// the client gets the rest of it.
func TestAConversationSurvivesAKilledHub(t *testing.T) {
	dir := t.TempDir()
	first := serveHub(t, dir, "interval")
	leave := joinAnswerer(t, first.grpc, "keeper")
	ada := connectCovenClient(t, first.grpc)
	hers := ada.open("keeper", "")
	ada.send("keeper", "answer 1")
	hers.readUntil(isDone)
	ada.send("keeper", "answer 2")
	hers.readUntil(isDone)
	ada.send("keeper", "wait 3")
	received := hers.readUntil(func(m *wire.ClientStreamEvent) bool { return m.GetThinking() != nil })
	last := received[len(received)-1].GetEventId()
	before := ada.history("keeper", 500)
	// The journal has everything before this task once it has this task.
	var task struct{ Receipt core.Receipt }
	if err := first.Client.Post(t.Context(), "/v1/tasks?wait=true", map[string]any{"to": "keeper", "content": "answer 4", "receipt": "recorded"}, &task); err != nil {
		t.Fatal(err)
	}
	first.kill()
	leave()

	second := serveHub(t, dir, "interval")
	bob := connectCovenClient(t, second.grpc)
	after := bob.history("keeper", 2)
	wantOrdered(t, after)
	if len(after) < len(before) {
		t.Fatalf("got %d events after the restart, want at least the %d from before", len(after), len(before))
	}
	for i, e := range before {
		if d := cmp.Diff(e.String(), after[i].String()); d != "" {
			t.Errorf("event %d changed (-before +after):\n%s", i, d)
		}
	}
	gone := "unreachable: the hub stopped while the task was running: ask again"
	rest := bob.open("keeper", last).readUntil(func(m *wire.ClientStreamEvent) bool { return m.GetError() != nil })
	if d := cmp.Diff([]string{"error: " + gone}, describe(rest)); d != "" {
		t.Errorf("behind the last id (-want +got):\n%s", d)
	}
	if got, want := describeStored(after[len(after)-1]), "error: "+gone; got != want {
		t.Errorf("got %q as the last event, want %q", got, want)
	}

	defer joinAnswerer(t, second.grpc, "keeper")()
	again := bob.open("keeper", "")
	// After the history it gets what happens now, not what another client was sent.
	again.readUntil(func(m *wire.ClientStreamEvent) bool {
		return describe([]*wire.ClientStreamEvent{m})[0] == "error: "+gone
	})
	bob.send("keeper", "answer 5")
	got := describe(again.readUntil(isDone))
	if d := cmp.Diff([]string{"asked: answer 5", "text: the answer", "done: the answer"}, got); d != "" {
		t.Errorf("the conversation goes on (-want +got):\n%s", d)
	}
	events := bob.history("keeper", 500)
	wantOrdered(t, events)
	if len(events) != len(after)+2 {
		t.Errorf("got %d events, want two more than %d", len(events), len(after))
	}
}

// joinAnswerer connects an agent that answers, or sends a first chunk and then waits. The returned
// function disconnects it.
func joinAnswerer(t *testing.T, addr string, id core.AgentID) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		card := core.Card{ID: id, MaxConcurrent: 4}
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: addr}, card, func(ctx context.Context, r core.Request, say func(core.Body) error) error {
			if strings.HasPrefix(r.Content, "answer") {
				return say(core.Text{Text: "the answer"})
			}
			if err := say(core.Text{Text: "the beginning"}); err != nil {
				return err
			}
			if err := say(core.Thinking{Text: "waiting"}); err != nil { // text is held back before it is recorded
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	select {
	case <-in:
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
	return func() {
		cancel()
		<-ended
	}
}
