package command_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// served returns a hub and the address of its REST.
func served(t *testing.T) (h *hub.Hub, at string) {
	t.Helper()
	h = coretest.NewHub(t, hub.Options{})
	server := httptest.NewServer(rest.New(h, rest.Options{Principal: func(*http.Request) (core.Principal, error) {
		return core.Principal{ID: "local", Operator: true}, nil
	}}))
	t.Cleanup(server.Close)
	return h, server.URL
}

// joins connects an agent.
func joins(t *testing.T, h *hub.Hub, id core.AgentID, capabilities ...string) *hub.Session {
	t.Helper()
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: string(id)}, Dialect: "test"})
	t.Cleanup(func() { s.Close(nil) })
	if err := s.Join(core.Card{ID: id, Dialect: "test", Capabilities: capabilities, MaxConcurrent: 1}, hub.JoinOptions{}); err != nil {
		t.Fatalf("%s joins: got %v, want no error", id, err)
	}
	return s
}

// nextBatch returns the next batch of a session that matches.
func nextBatch(t *testing.T, s *hub.Session, match func(hub.Batch) bool) hub.Batch {
	t.Helper()
	for {
		b, err := s.Next(t.Context())
		if err != nil {
			t.Fatalf("waiting for a batch: got %v, want one", err)
		}
		if match(b) {
			return b
		}
	}
}

func isAssigned(b hub.Batch) bool {
	for _, e := range b.Events {
		if e.Body.Kind() == core.KindAssigned {
			return true
		}
	}
	return false
}

// A question comes from an agent that was asked because of the task; one of another conversation is nobody's business here.
func TestAskShowsAtATerminalWhatAgentsAskForItsTask(t *testing.T) {
	h, at := served(t)
	boss, worker, stranger := joins(t, h, "boss"), joins(t, h, "worker", "ui"), joins(t, h, "stranger", "ui")
	at = "--hub=" + at
	screen := newScreen(t)
	code := make(chan int, 1)
	go func() {
		code <- command.Run(context.Background(), []string{"ask", "boss", "plan", at}, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: screen.tty, Err: screen.tty})
	}()
	plan := nextBatch(t, boss, isAssigned).Task
	stranger.CallTool("s", "ask_user", json.RawMessage(`{"question":"Is anybody here?"}`))
	part, err := boss.Open(core.Request{To: core.ToAgent("worker"), Content: "find a day"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nextBatch(t, worker, isAssigned)
	worker.CallTool("q", "ask_user", json.RawMessage(`{"question":"Which\nday?","options":[{"label":"Friday"},{"label":"Sunday","description":"late"}]}`))
	id := screen.await(t, `'dragoman answer (\S+) OPTION' answers it within \S+\]`)[1]
	if got, out, stderr := run(t, "answer", id, "Sunday", at); got != command.ExitDone || out != "Sunday\n" {
		t.Errorf("answer: got %d, %q and %q, want Sunday", got, out, stderr)
	}
	b := nextBatch(t, worker, func(b hub.Batch) bool { return b.Tool != nil })
	if got := string(b.Tool.Output); !strings.Contains(got, "Sunday") {
		t.Errorf("the agent that asks: got %s, want Sunday", got)
	}
	for s, task := range map[*hub.Session]core.TaskID{worker: part.ID(), boss: plan.ID()} {
		if err := s.Report(task, core.Done{Text: "Sunday it is"}, nil); err != nil {
			t.Error(err)
		}
	}
	if got := <-code; got != command.ExitDone {
		t.Errorf("ask: got exit code %d, want 0", got)
	}
	text := screen.shown()
	head, rest, _ := strings.Cut(text, "\n  'dragoman answer "+id+" OPTION' answers it within ")
	if want := "[a question of worker: Which\n  day?\n  - Friday\n  - Sunday: late"; head != want || !strings.HasSuffix(rest, "]\nSunday it is\n") || strings.Count(text, "[") != 1 {
		t.Errorf("got on the terminal\n%s\nwant\n%s\nonce, how to answer, and the answer", text, want)
	}
}
