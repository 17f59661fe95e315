package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestAnAgentThatAsksAtAnotherHubDoesNotBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := core.Principal{ID: "bob", Authenticated: true, Credential: &core.Credential{Kind: core.KindAgent}}
		works := w.hubs["a"].Connect(hub.Identity{Principal: bob, Dialect: "test"})
		if err := works.Join(core.Card{ID: "bob", MaxConcurrent: 100}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		asks := w.hubs["b"].Connect(hub.Identity{Principal: bob, Dialect: "test"})
		open := func(s *hub.Session) error {
			time.Sleep(time.Second) // the other hub is told
			_, err := s.Open(core.Request{To: core.ToAgent("bob"), Content: "what next?"}, hub.OpenOptions{Unwatched: true})
			return err
		}
		if err := open(w.person("b")); err != nil {
			t.Fatal(err)
		}
		var held []*task.Task
		for hops := range policy.DefaultHops {
			held = append(held, assigned(t, works))
			if got := held[hops].Hops(); got != hops {
				t.Fatalf("got a task with %d hops, want %d", got, hops)
			}
			if err := open(asks); err != nil {
				t.Fatalf("after %d hops: %v", hops, err)
			}
		}
		held = append(held, assigned(t, works))
		refused := func(when string) {
			t.Helper()
			if f := core.AsFault(open(asks)); f == nil || f.Code != core.CodeLoop {
				t.Errorf("%s: got %v, want a loop", when, f)
			}
		}
		refused("while it works")
		for _, one := range held {
			if err := works.Report(one.ID(), core.Done{}, nil); err != nil {
				t.Fatal(err)
			}
		}
		refused("just after it worked")
		time.Sleep(time.Minute)
		if err := open(asks); err != nil {
			t.Fatal(err)
		}
		if got := assigned(t, works).Hops(); got != 0 {
			t.Errorf("after a minute: got a task with %d hops, want 0", got)
		}
	})
}

func TestAPersonWhoRunsAnAgentAtAnotherHubBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		ann := core.Principal{ID: "ann", Authenticated: true, Credential: &core.Credential{Kind: core.KindPerson, Agents: []string{"scribe"}}}
		works := w.hubs["a"].Connect(hub.Identity{Principal: ann, Dialect: "test"})
		if err := works.Join(core.Card{ID: "scribe", MaxConcurrent: 100}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		asks := w.hubs["b"].Connect(hub.Identity{Principal: ann, Dialect: "test"})
		for range 3 {
			time.Sleep(time.Second) // the other hub is told
			ask(t, asks, core.ToAgent("scribe"))
			if got := assigned(t, works).Hops(); got != 0 {
				t.Errorf("got a task with %d hops, want 0", got)
			}
		}
	})
}
