package e2e

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// endsUnrecorded is the setting after which ends no longer wait for a journal that cannot write, so
// that a test can go on asking.
const endsUnrecorded = "DRAGOMAN_JOURNAL_LAG"

// startKeeper connects an agent named keeper that answers every request until the test ends.
func (h *servedHub) startKeeper(t *testing.T) { startKeeper(t, h.grpc) }

// startKeeper connects the keeper to the hub with a gRPC listener at an address.
func startKeeper(t *testing.T, grpc string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		card := core.Card{ID: "keeper", MaxConcurrent: 2}
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: grpc}, card, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			return say(core.Text{Text: "to " + r.Content})
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		leave()
		<-ended
	})
	select {
	case <-in:
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
}

// ask asks the keeper, waits for done, and returns the task.
func (h *servedHub) ask(t *testing.T, content string) core.TaskID {
	t.Helper()
	var received struct {
		ID    core.TaskID
		State string
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if err := h.Client.Post(ctx, "/v1/tasks?wait=true", map[string]string{"to": "keeper", "content": content}, &received); err != nil || received.State != "done" {
		t.Fatalf("asking: got %+v and %v, want it done", received, err)
	}
	return received.ID
}

// askFailing is ask at a hub whose journal fails or is about to: it returns "" once the request is refused for
// that.
func (h *servedHub) askFailing(t *testing.T, content string) (taken core.TaskID) {
	t.Helper()
	var received struct{ ID core.TaskID }
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	err := h.Client.Post(ctx, "/v1/tasks?wait=true", map[string]string{"to": "keeper", "content": content}, &received)
	if err != nil {
		wantUnrecordable(t, err)
	}
	return received.ID
}

// wantUnrecordable fails the test unless a request was refused since it cannot be recorded, to be sent again.
func wantUnrecordable(t *testing.T, err error) {
	t.Helper()
	f := (*core.Fault)(nil)
	if !errors.As(err, &f) || f.Code != core.CodeOverloaded || !f.Retryable || !strings.Contains(f.Message, "cannot record anything") {
		t.Fatalf("asking: got %v, want it overloaded and retryable, since nothing can be recorded", err)
	}
}
