package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/question"
)

// A hub is killed while an agent waits for a person: for an answer, and for a decision. The conversation says of both,
// after a start, that nobody gave them and why, and one command asks again.
func TestWhatNobodyAnsweredBeforeAKillStaysInTheConversationAndIsAskedAgain(t *testing.T) {
	dir := t.TempDir()
	asks := func(ctx context.Context, turn agent.Turn) error {
		if err := turn.Report(core.ToolCall{ID: "t1", Name: "Bash", Input: `{"command":"ls"}`}, nil); err != nil {
			return err
		}
		if err := turn.Report(core.ApprovalRequested{ID: "t1", Name: "Bash", Input: `{"command":"ls"}`}, nil); err != nil {
			return err
		}
		o, err := turn.Ask(ctx, question.Question{Text: "Which day?", Options: []core.Option{{Label: "Monday"}, {Label: "Friday"}}})
		if err != nil {
			return err
		}
		return turn.Report(core.Done{Text: "it is " + o.String()}, nil)
	}
	first := serveHub(t, dir, "always")
	leave := worksAt(t, first, asks)
	var opened struct {
		ID, Thread string
	}
	readQuestions(t, first, 0)
	resp, err := first.Do(t.Context(), http.MethodPost, "/v1/tasks", "application/json", map[string]string{"to": "planner", "content": "plan it", "thread": "trip", "receipt": "recorded"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&opened); err != nil {
		t.Fatal(err)
	}
	readQuestions(t, first, 1)
	// The journal has a later task, and so all that the agent has said before.
	later, err := first.Do(t.Context(), http.MethodPost, "/v1/tasks", "application/json", map[string]string{"to": "planner", "content": "later", "receipt": "recorded"})
	if err != nil {
		t.Fatal(err)
	}
	defer later.Body.Close()
	first.kill()
	leave()

	second := serveHub(t, dir, "always")
	defer worksAt(t, second, asks)()
	for line, want := range map[string]string{
		"question_answered": "task_ended", "tool_state": "the task ended before anybody decided on it", "failed": "the hub stopped while the task was running",
	} {
		if got := tailOf(t, second, opened.ID); !strings.Contains(got, line) || !strings.Contains(got, want) {
			t.Errorf("the task after the start: got\n%s\nwant %s: %s", got, line, want)
		}
	}

	again := program(t, "again", opened.ID, "--hub", second.URL)
	var out, errs bytes.Buffer
	again.Stdout, again.Stderr = &out, &errs
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	q := readQuestions(t, second, 1)[0]
	var taken question.Outcome
	if err := second.Post(t.Context(), "/v1/questions/"+q.ID+"/answer", map[string]any{"selected": []string{"Friday"}}, &taken); err != nil {
		t.Errorf("the answer: got %v, want it taken", err)
	}
	if err := again.Wait(); err != nil || out.String() != "it is Friday\n" {
		t.Errorf("asked again: got %v, %q and %q, want the answer", err, out.String(), errs.String())
	}
}

// worksAt has an agent named planner work at a hub until the function that it returns is called.
func worksAt(t *testing.T, h *servedHub, work func(context.Context, agent.Turn) error) (leave func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- client.ServeNative(ctx, client.Hub{URL: h.URL}, core.Card{ID: "planner", MaxConcurrent: 2, Capabilities: []string{"ui"}}, work, func() { close(in) }, slog.New(slog.DiscardHandler))
	}()
	select {
	case <-in:
	case err := <-ended:
		t.Fatalf("the agent joins: got %v, want no error", err)
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
	return func() {
		stop()
		<-ended
	}
}

// readQuestions waits for so many open questions; with 0 it shows once that somebody reads them.
func readQuestions(t *testing.T, h *servedHub, n int) []question.Question {
	t.Helper()
	var list struct{ Questions []question.Question }
	eventually(t, "questions are open", func() error {
		if err := h.Get(t.Context(), "/v1/questions", &list); err != nil {
			return err
		}
		if len(list.Questions) < n {
			return fmt.Errorf("got %v, want %d", list.Questions, n)
		}
		return nil
	})
	return list.Questions
}

// tailOf prints the events of a task that has ended.
func tailOf(t *testing.T, h *servedHub, id string) string {
	t.Helper()
	out, err := program(t, "tail", id, "--hub", h.URL).CombinedOutput()
	if err != nil {
		t.Fatalf("dragoman tail: got %v and %s", err, out)
	}
	return string(out)
}
