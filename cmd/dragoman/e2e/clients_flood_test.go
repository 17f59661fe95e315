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

// A client reads nothing while the agent says 50,000 things in its conversation. The
// agent is not slowed, nor is another reader, nor another conversation; and when the
// client reads on, it has lost nothing.
func TestAClientThatReadsNothingLosesNothingAndSlowsNobody(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, coven.Name, "flood", 16)
	s.cast(t, coven.Name, "guide", 1)
	ada, bob := arrive(t, s.service.Addresses().GRPC), arrive(t, s.service.Addresses().GRPC)
	deaf := ada.listens("flood", "")
	keen := bob.listens("flood", "")
	const bursts = 50_000 / burstChunks
	var want []string
	for range bursts {
		key := s.key()
		ada.says("flood", "burst "+key)
		want = append(want, "asked: burst "+key, "text: "+wholeBurst, "done: "+wholeBurst)
		keen.hears(isDone)
	}
	key := s.key()
	ears := bob.listens("guide", "")
	bob.says("guide", "say "+key)
	ears.hears(isDone)

	for range bursts {
		deaf.hears(isDone)
	}
	for who, e := range map[string]*ear{"the keen reader": keen, "the reader that read nothing": deaf} {
		if got := inWords(e.heard); !cmp.Equal(want, got) {
			t.Errorf("%s got %d events, %.200q, want %d", who, len(got), got, len(want))
		}
	}
}

// A hub is killed while a client listens. The hub that is started again knows the
// conversation under the same ids, and the client hears the rest of it.
func TestAConversationIsFoundAgainAfterTheHubWasKilled(t *testing.T) {
	dir := t.TempDir()
	first := serveProgram(t, dir, "interval")
	leave := joinsAs(t, first.grpc, "keeper")
	ada := arrive(t, first.grpc)
	hers := ada.listens("keeper", "")
	ada.says("keeper", "answer 1")
	hers.hears(isDone)
	ada.says("keeper", "answer 2")
	hers.hears(isDone)
	ada.says("keeper", "wait 3")
	heard := hers.hears(func(m *wire.ClientStreamEvent) bool { return m.GetThinking() != nil })
	last := heard[len(heard)-1].GetEventId()
	before := ada.recalls("keeper", 500)
	// What was said before this is in the journal once this is.
	var task struct{ Receipt core.Receipt }
	if err := first.Client.Post(t.Context(), "/v1/tasks?wait=true", map[string]any{"to": "keeper", "content": "answer 4", "receipt": "recorded"}, &task); err != nil {
		t.Fatal(err)
	}
	first.kill()
	leave()

	second := serveProgram(t, dir, "interval")
	bob := arrive(t, second.grpc)
	after := bob.recalls("keeper", 2)
	inOrder(t, after)
	if len(after) < len(before) {
		t.Fatalf("got %d events after the restart, want at least the %d from before", len(after), len(before))
	}
	for i, e := range before {
		if d := cmp.Diff(e.String(), after[i].String()); d != "" {
			t.Errorf("event %d changed (-before +after):\n%s", i, d)
		}
	}
	gone := "unreachable: the hub stopped while the task was running: ask again"
	rest := bob.listens("keeper", last).hears(func(m *wire.ClientStreamEvent) bool { return m.GetError() != nil })
	if d := cmp.Diff([]string{"error: " + gone}, inWords(rest)); d != "" {
		t.Errorf("behind the last id (-want +got):\n%s", d)
	}
	if got, want := remembered(after[len(after)-1]), "error: "+gone; got != want {
		t.Errorf("got %q as the last event, want %q", got, want)
	}

	defer joinsAs(t, second.grpc, "keeper")()
	again := bob.listens("keeper", "")
	// Behind what was before it hears what happens, and not what another listener was told.
	again.hears(func(m *wire.ClientStreamEvent) bool {
		return inWords([]*wire.ClientStreamEvent{m})[0] == "error: "+gone
	})
	bob.says("keeper", "answer 5")
	got := inWords(again.hears(isDone))
	if d := cmp.Diff([]string{"asked: answer 5", "text: the answer", "done: the answer"}, got); d != "" {
		t.Errorf("the conversation goes on (-want +got):\n%s", d)
	}
	events := bob.recalls("keeper", 500)
	inOrder(t, events)
	if len(events) != len(after)+2 {
		t.Errorf("got %d events, want two more than %d", len(events), len(after))
	}
}

// joinsAs lets an agent join that answers, or begins to and waits. It leaves when
// what is returned is called.
func joinsAs(t *testing.T, addr string, id core.AgentID) (leave func()) {
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
			if err := say(core.Thinking{Text: "waiting"}); err != nil { // text waits for more of it before it is recorded
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
