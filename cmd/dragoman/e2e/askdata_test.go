package e2e

import (
	"context"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAskSendsTheDataOfStdinWithoutWords(t *testing.T) {
	h := newTestHub(t, nil)
	asked := make(chan core.Request, 1)
	h.startAgentWith(t, native.Dialect, "bob", func(_ context.Context, r core.Request, say func(core.Body) error) error {
		asked <- r
		return say(core.Done{Data: r.Data})
	})
	const data = `{"n":1}`
	code, stdout, stderr := runWith(t.Context(), data+"\n", "ask", "bob", "--data", "@-", "--hub", h.url())
	if code != command.ExitDone || stdout != data+"\n" {
		t.Fatalf("got %d, %q and %q, want the data back", code, stdout, stderr)
	}
	if r := <-asked; r.Content != "" || string(r.Data) != data {
		t.Errorf("the agent got %q and %s, want no words and %s", r.Content, r.Data, data)
	}
}
