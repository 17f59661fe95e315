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

func TestAHandlerAsksOtherAgents(t *testing.T) {
	withHub(t, func(s *setup) {
		var agent *parallaxclient.Agent
		var events []core.Body
		s.work(core.Card{ID: "helper"}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			_ = say(core.Thinking{Text: "hm"})
			_ = say(core.Text{Text: strings.ToUpper(r.Content)})
			return say(core.Done{Data: json.RawMessage(`{"content":"not this"}`), TokensUsed: 4})
		}, parallaxclient.WorkOptions{})
		s.work(core.Card{ID: "front"}, func(ctx context.Context, r core.Request, say func(core.Body) error) error {
			got, err := agent.Ask(ctx, core.Request{To: core.ToAgent("helper"), Content: r.Content}, func(b core.Body) { events = append(events, b) })
			if err != nil {
				return err
			}
			return say(core.Text{Text: "it says " + got.Text})
		}, parallaxclient.WorkOptions{Registered: func(a *parallaxclient.Agent) { agent = a }})
		if _, here := s.hub.Agent(core.Principal{Operator: true}, "front"); !here {
			t.Error("front: got no agent, want the id of its card")
		}
		a := s.requester()
		if got := a.answer(a.ask("front", "hello")); got.Text != "it says HELLO" {
			t.Errorf("answer: got %+v, want it says HELLO", got)
		}
		want := []core.Body{core.Accepted{}, core.Thinking{Text: "hm"}, core.Text{Text: "HELLO"}, core.Usage{Output: 4}, core.Done{Text: "not this", Data: json.RawMessage(`{"content":"not this"}`), TokensUsed: 4}}
		if diff := cmp.Diff(want, events, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("events differ (-want +got):\n%s", diff)
		}
		// The loop leads through both tasks.
		_, err := agent.Ask(s.Context(), core.Request{To: core.ToAgent("front"), Content: "me?"}, nil)
		if core.AsFault(err).Code != core.CodeLoop {
			t.Errorf("asking a loop: got %v, want loop", err)
		}
		if _, err = agent.Ask(s.Context(), core.Request{To: core.ToAgent("nobody"), Content: "?"}, nil); core.AsFault(err).Code != core.CodeUnknownAgent {
			t.Errorf("asking an unknown agent: got %v, want unknown_agent", err)
		}
	})
}

func TestARequestIsCancelledWithTheTaskOfItsHandler(t *testing.T) {
	withHub(t, func(s *setup) {
		var agent *parallaxclient.Agent
		helper := s.registered(parallax.Options{AgentID: "helper"}, full)
		s.work(core.Card{ID: "front"}, func(ctx context.Context, r core.Request, _ func(core.Body) error) error {
			_, err := agent.Ask(ctx, core.Request{To: core.ToAgent("helper"), Content: r.Content}, nil)
			return err
		}, parallaxclient.WorkOptions{Registered: func(a *parallaxclient.Agent) { agent = a }})
		a := s.requester()
		opened := a.ask("front", "hello")
		assigned := decode[wire.Task](helper, helper.receive(wire.TypeTask))
		if err := a.session.Cancel(opened.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		helper.receive(wire.TypeTaskCancelled)
		helper.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"CANCELLED"}}}`, assigned))
		if got := a.answer(opened); got.End != core.KindCancelled {
			t.Errorf("answer: got %+v, want it cancelled", got)
		}
	})
}

func TestAskFailsWhenTheConnectionEnds(t *testing.T) {
	withHub(t, func(s *setup) {
		var agent *parallaxclient.Agent
		s.registered(parallax.Options{AgentID: "mute"}, full)
		stop := s.work(core.Card{ID: "asker"}, echo, parallaxclient.WorkOptions{Registered: func(a *parallaxclient.Agent) { agent = a }})
		opened := make(chan error, 1)
		go func() {
			_, err := agent.Ask(s.Context(), core.Request{To: core.ToAgent("mute"), Content: "?"}, nil)
			opened <- err
		}()
		synctest.Wait()
		if err := stop(); err != nil {
			t.Errorf("work: got %v, want no error", err)
		}
		if err := <-opened; core.AsFault(err).Code != core.CodeUnreachable {
			t.Errorf("ask: got %v, want unreachable", err)
		}
		if _, err := agent.Ask(s.Context(), core.Request{To: core.ToAgent("mute"), Content: "?"}, nil); core.AsFault(err).Code != core.CodeUnreachable {
			t.Errorf("ask again: got %v, want unreachable", err)
		}
	})
}
