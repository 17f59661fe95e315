package command_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/schemas"
)

// served returns a hub and the address of its REST and MCP.
func served(t *testing.T) (h *hub.Hub, at string) {
	t.Helper()
	h = coretest.NewHub(t, hub.Options{Schema: schemas.Compile})
	local := core.Principal{ID: "local", Operator: true}
	tools := mcp.New(h, mcp.Options{Anonymous: local})
	all := http.NewServeMux()
	all.Handle(mcp.Path, tools)
	all.Handle("/", rest.New(h, rest.Options{Principal: func(*http.Request) (core.Principal, error) { return local, nil }}))
	server := httptest.NewServer(all)
	t.Cleanup(server.Close)
	t.Cleanup(tools.Close)
	return h, server.URL
}

// joins connects an agent.
func joins(t *testing.T, h *hub.Hub, id core.AgentID, capabilities ...string) *hub.Session {
	t.Helper()
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: string(id)}, Dialect: "test"})
	t.Cleanup(func() { s.Close(nil) })
	if err := s.Join(core.Card{ID: id, Dialect: "test", Capabilities: capabilities, Features: core.FeatureCancellation, MaxConcurrent: 1}, hub.JoinOptions{}); err != nil {
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

func TestAnAnswerToAFormIsReadAtOnceAndTheQuestionWaitsIfItDoesNotFit(t *testing.T) {
	h, at := served(t)
	at = "--hub=" + at
	worker := joins(t, h, "worker", "ui")
	asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}})
	t.Cleanup(func() { asker.Close(nil) })
	task, err := asker.Open(core.Request{To: core.ToAgent("worker"), Content: "book"}, hub.OpenOptions{Attends: true})
	if err != nil {
		t.Fatal(err)
	}
	nextBatch(t, worker, isAssigned)
	form := question.Form{
		Message: "Who comes?", Decline: "Decline to answer",
		Schema: []byte(`{"type":"object","properties":{"name":{"type":"string"},"seats":{"type":"integer","maximum":9}},"required":["name","seats"]}`),
	}
	type answer struct {
		question.Outcome
		err error
	}
	ask := func() (id string, answered chan answer) {
		t.Helper()
		answered = make(chan answer, 1)
		go func() {
			o, err := worker.AskPeople(t.Context(), task.ID(), question.Question{Text: "Who comes? In lines.", Form: &form, Options: []core.Option{{Label: form.Decline}}})
			answered <- answer{o, err}
		}()
		nextBatch(t, asker, func(b hub.Batch) bool { return b.Question != nil && b.Question.Outcome == nil })
		open := h.Questions(core.Principal{Operator: true})
		return open[0].ID, answered
	}
	asker.WatchQuestions(question.View{Thread: task.Thread(), For: core.Principal{ID: "ann"}})
	id, answered := ask()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"name: Ann"}, "the answer does not fit: seats is missing; 'dragoman questions " + id + "' shows what is asked"},
		{[]string{"name: Ann", "seats: two"}, "the answer does not fit: seats: "},
		{[]string{"--content", `{"name":"Ann","seats":10}`}, "content: seats: "},
		{[]string{"--content", `{`}, "--content is not JSON"},
		{nil, "say what to answer"},
		{[]string{"--dismiss", "x"}, "stand alone"},
	} {
		if code, out, stderr := run(t, append([]string{"answer", at, id}, tt.args...)...); code == command.ExitDone || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: got %d, %q and %q, want %q", tt.args, code, out, stderr, tt.want)
		}
	}
	if code, out, stderr := run(t, "questions", at, id); code != command.ExitDone || !strings.Contains(out, "worker asks for task "+string(task.ID())) || !strings.Contains(out, `dragoman answer --hub `+strings.TrimPrefix(at, "--hub=")+" "+id+` "FIELD: VALUE"...`) {
		t.Errorf("got %d, %q and %q, want who asks, and how to answer", code, out, stderr)
	}
	if code, _, stderr := run(t, "answer", at, id, "name: Ann", "seats: 2"); code != command.ExitDone {
		t.Errorf("got %d and %q, want it answered", code, stderr)
	}
	if got := <-answered; string(got.Content) != `{"name":"Ann","seats":2}` || got.err != nil {
		t.Errorf("got %s and %v, want the object", got.Content, got.err)
	}
	id, answered = ask()
	if code, _, stderr := run(t, "answer", at, id, form.Decline); code != command.ExitDone {
		t.Errorf("got %d and %q, want it declined", code, stderr)
	}
	if got := <-answered; len(got.Selected) != 1 || got.Selected[0] != form.Decline {
		t.Errorf("got %+v, want it declined", got)
	}
}
