package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/acptest"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/core"
)

func TestTheClientSendsQueriesAndDelegates(t *testing.T) {
	for _, progress := range []bool{false, true} {
		withHub(t, func(t *testing.T, s *setup) {
			s.work(core.Card{ID: "echo"}, acpclient.WorkOptions{}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
				if r.Content == "fail" {
					return core.NewFault(core.CodeBudget, "no")
				}
				return errors.Join(say(core.Thinking{Text: "hm"}), say(core.Text{Text: r.Content}), say(core.Text{Text: "!"}),
					say(core.File{Name: "f", Data: []byte("x")}), say(core.Usage{Output: 5}), say(core.Done{Data: json.RawMessage(`{"ok":true}`)}))
			})
			c := s.client(acptest.Options{ID: "kit", Progress: progress})
			pieces := 0
			for _, intent := range []core.Intent{core.IntentAsk, core.IntentDelegate} {
				answer, err := c.Ask(t.Context(), core.Request{Intent: intent, To: core.ToAgent("echo"), Content: "hi"}, func(core.Body) { pieces++ })
				if err != nil {
					t.Fatalf("%s: got %v, want no error", intent, err)
				}
				if answer.Text != "hi!" || string(answer.Data) != `{"ok":true}` || len(answer.Files) != 1 || answer.TokensUsed != 5 || answer.Agent != "echo" {
					t.Errorf("%s: got %+v, want hi! with its data, file and tokens from echo", intent, answer)
				}
				if _, err := c.Ask(t.Context(), core.Request{Intent: intent, To: core.ToAgent("echo"), Content: "fail"}, nil); core.AsFault(err).Code != core.CodeBudget {
					t.Errorf("%s that fails: got %v, want budget", intent, err)
				}
			}
			if progress != (pieces > 0) {
				t.Errorf("pieces with progress %t: got %d", progress, pieces)
			}
			if _, err := c.Ask(t.Context(), core.Request{To: core.ToAgent("ecko"), Content: "hi"}, nil); core.AsFault(err).Code != core.CodeUnknownAgent || !strings.Contains(err.Error(), "echo") {
				t.Errorf("an unknown agent: got %v, want unknown_agent that names echo", err)
			}
		})
	}
}

func TestAClientThatStopsWaitingCancelsItsQuery(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		stopped := make(chan error, 1)
		s.work(core.Card{ID: "slow"}, acpclient.WorkOptions{}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			<-ctx.Done()
			stopped <- context.Cause(ctx)
			return ctx.Err()
		})
		c := s.client(acptest.Options{ID: "kit"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Ask(ctx, core.Request{To: core.ToAgent("slow"), Content: "hi"}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want deadline exceeded", err)
		}
		if err := <-stopped; core.AsFault(err).Code != core.CodeCancelled {
			t.Errorf("the handler: got %v, want a cancel", err)
		}
	})
}
