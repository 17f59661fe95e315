package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

func TestUsageIsShownByEveryDimension(t *testing.T) {
	h := newTestHub(t, nil)
	runUsageTask(t, h.service.Addresses().GRPC, h.url(), core.Usage{Input: 1500, Output: 200}, core.Usage{Input: 2000, Output: 150, Thinking: 7})
	for by, key := range map[string]string{"agent": "spender", "thread": "th", "day": time.Now().UTC().Format(time.DateOnly), "requester": "", "task": ""} {
		code, out, stderr := h.run(t, "usage", "--by", by)
		if code != command.ExitDone {
			t.Fatalf("by %s: got the exit code %d and %q, want %d", by, code, stderr, command.ExitDone)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], strings.ToUpper(by)) || !strings.HasPrefix(lines[1], key) ||
			!strings.HasSuffix(strings.Join(strings.Fields(lines[1]), " "), "3500 350 7 0 0 3857 unpriced") {
			t.Errorf("by %s: got\n%s\nwant a line of %s with 3500, 350, 7, 0, 0 and 3857, unpriced", by, out, key)
		}
	}
}

// runUsageTask has a Coven agent answer a task in the thread th with these usage events, and
// returns once the task is recorded.
func runUsageTask(t *testing.T, grpc, http string, spent ...core.Usage) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		card := core.Card{ID: "spender", Features: core.FeatureUsage}
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: grpc}, card, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			for _, u := range spent {
				if err := say(u); err != nil {
					return err
				}
			}
			return say(core.Text{Text: "spent"})
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		leave()
		<-ended
	}()
	select {
	case <-in:
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
	var task struct {
		State   string
		Receipt core.Receipt
	}
	postTask(t, http, &task)
	if task.State != "done" || task.Receipt.Stage != core.StageRecorded {
		t.Fatalf("got %+v, want it done and recorded", task)
	}
}

// postTask opens a task and waits until its end is recorded.
func postTask(t *testing.T, base string, answer any) {
	t.Helper()
	c := &client.Client{URL: base, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	resp, err := c.Do(t.Context(), http.MethodPost, "/v1/tasks?wait=true", "application/json",
		map[string]string{"to": "spender", "content": "spend", "thread": "th", "receipt": "recorded"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
}
