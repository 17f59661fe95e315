package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestATaskIsEstimatedAtEveryHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, ann := w.join("b", core.Card{ID: "bob"}), w.person("a")
		want := func(what string, one *task.Task, want time.Duration, at ...string) {
			t.Helper()
			time.Sleep(time.Second) // all hubs hear what the agent has to do
			for _, name := range at {
				if _, err := w.hubs[name].Task(t.Context(), operator, one.ID()); err != nil {
					t.Fatal(err)
				}
				if got := w.hubs[name].Estimate(one.ID()).Round(10 * time.Millisecond); got != want {
					t.Errorf("%s, at hub %s: got %s, want %s", what, name, got, want)
				}
			}
		}
		first := ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		want("before the agent has done any", first, 0, "a", "b", "c")
		time.Sleep(7 * time.Second)
		if err := bob.Report(held.ID(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
		until(t, ann, first.ID(), core.KindDone)
		want("a task that has ended", first, 0, "a", "b", "c")

		second := ask(t, ann, core.ToAgent("bob"))
		gets(t, bob, second.ID())
		third := ask(t, ann, core.ToAgent("bob"))
		want("a task that runs", second, 8*time.Second, "a", "b", "c")
		want("the task behind it", third, 16*time.Second, "a", "b", "c")
		fourth := ask(t, ann, core.ToAgent("bob"))
		want("the task behind both", fourth, 24*time.Second, "a", "b", "c")
		want("the first that waits, at its own hub", third, 16*time.Second, "b")
		want("at others, which do not know its place", third, 24*time.Second, "a", "c")
	})
}
