package parallax_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAWorkerAsksOthersFromWithinATask(t *testing.T) {
	onStage(t, func(s *stage) {
		var agent *parallaxclient.Agent
		var heard []core.Body
		s.work(core.Card{ID: "helper"}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			_ = say(core.Thinking{Text: "hm"})
			_ = say(core.Text{Text: strings.ToUpper(r.Content)})
			return say(core.Done{Data: json.RawMessage(`{"content":"not this"}`), TokensUsed: 4})
		}, parallaxclient.WorkOptions{})
		s.work(core.Card{ID: "front"}, func(ctx context.Context, r core.Request, say func(core.Body) error) error {
			got, err := agent.Ask(ctx, core.Request{To: core.ToAgent("helper"), Content: r.Content}, func(b core.Body) { heard = append(heard, b) })
			if err != nil {
				return err
			}
			return say(core.Text{Text: "it says " + got.Text})
		}, parallaxclient.WorkOptions{Registered: func(a *parallaxclient.Agent) { agent = a }})
		if _, here := s.hub.Agent("front"); !here {
			t.Error("front: got nobody, want it registered under the id of its card")
		}
		a := s.asker()
		if got := a.answer(a.ask("front", "hello")); got.Text != "it says HELLO" {
			t.Errorf("answer: got %+v, want it says HELLO", got)
		}
		want := []core.Body{core.Accepted{}, core.Thinking{Text: "hm"}, core.Text{Text: "HELLO"}, core.Usage{Output: 4}, core.Done{Text: "not this", Data: json.RawMessage(`{"content":"not this"}`), TokensUsed: 4}}
		if diff := cmp.Diff(want, heard, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("heard otherwise (-want +got):\n%s", diff)
		}
		// The loop is seen through both tasks.
		_, err := agent.Ask(s.Context(), core.Request{To: core.ToAgent("front"), Content: "me?"}, nil)
		if core.AsFault(err).Code != core.CodeLoop {
			t.Errorf("asking itself: got %v, want a loop", err)
		}
		if _, err = agent.Ask(s.Context(), core.Request{To: core.ToAgent("nobody"), Content: "?"}, nil); core.AsFault(err).Code != core.CodeUnknownAgent {
			t.Errorf("asking nobody: got %v, want unknown_agent", err)
		}
	})
}

func TestWhatAWorkerAskedIsCancelledWithItsTask(t *testing.T) {
	onStage(t, func(s *stage) {
		var agent *parallaxclient.Agent
		helper := s.registered(parallax.Options{AgentID: "helper"}, full)
		s.work(core.Card{ID: "front"}, func(ctx context.Context, r core.Request, _ func(core.Body) error) error {
			_, err := agent.Ask(ctx, core.Request{To: core.ToAgent("helper"), Content: r.Content}, nil)
			return err
		}, parallaxclient.WorkOptions{Registered: func(a *parallaxclient.Agent) { agent = a }})
		a := s.asker()
		asked := a.ask("front", "hello")
		given := inside[wire.Task](helper, helper.hear(wire.TypeTask))
		if err := a.session.Cancel(asked.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		helper.hear(wire.TypeTaskCancelled)
		helper.say(fill(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"CANCELLED"}}}`, given))
		if got := a.answer(asked); got.End != core.KindCancelled {
			t.Errorf("answer: got %+v, want it cancelled", got)
		}
	})
}

func TestAskingEndsWithTheConnection(t *testing.T) {
	onStage(t, func(s *stage) {
		var agent *parallaxclient.Agent
		s.registered(parallax.Options{AgentID: "mute"}, full)
		stop := s.work(core.Card{ID: "asks"}, echo, parallaxclient.WorkOptions{Registered: func(a *parallaxclient.Agent) { agent = a }})
		asked := make(chan error, 1)
		go func() {
			_, err := agent.Ask(s.Context(), core.Request{To: core.ToAgent("mute"), Content: "?"}, nil)
			asked <- err
		}()
		synctest.Wait()
		if err := stop(); err != nil {
			t.Errorf("work: got %v, want no error", err)
		}
		if err := <-asked; core.AsFault(err).Code != core.CodeUnreachable {
			t.Errorf("ask: got %v, want unreachable", err)
		}
		if _, err := agent.Ask(s.Context(), core.Request{To: core.ToAgent("mute"), Content: "?"}, nil); core.AsFault(err).Code != core.CodeUnreachable {
			t.Errorf("ask again: got %v, want unreachable", err)
		}
	})
}
