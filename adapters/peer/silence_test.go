package peer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Hubs a and b do not hear each other in these tests, and c hears both: neither is gone, for as long
// as that lasts.

func TestAHubThatIsNotHeardIsAskedForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", thinker("bob"))
		cid := w.join("c", thinker("cid"))
		ann := w.person("a")
		w.net.Cut("a", "b")
		time.Sleep(time.Second)
		for range 3 {
			asked := ask(t, ann, core.ToCapability("think"))
			answers(t, cid, "because")
			until(t, ann, asked.ID(), core.KindDone)
		}
		time.Sleep(4 * time.Second)
		_, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "why?"}, hub.OpenOptions{})
		if f := core.AsFault(err); f == nil || f.Code != core.CodeUnreachable || !f.Retryable {
			t.Errorf("by id: got %v, want it refused as unreachable, to be tried again", err)
		}
		w.net.Heal()
		w.until("bob can be asked again", func() bool {
			_, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "why?"}, hub.OpenOptions{})
			return err == nil
		})
	})
}

func TestWhatAHubThatIsNotHeardStoresReachesReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob", MaxConcurrent: 2})
		ann, there := w.person("a"), w.person("c")
		asked := ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		until(t, ann, asked.ID(), core.KindAssigned)
		other := ask(t, there, core.ToAgent("bob"))
		running := assigned(t, bob)
		w.net.Cut("a", "b")
		time.Sleep(5 * time.Second)
		if err := bob.Report(held.ID(), core.Done{Text: "because"}, nil); err != nil {
			t.Fatal(err)
		}
		until(t, ann, asked.ID(), core.KindDone)

		began := time.Now()
		read := func() error {
			_, err := w.hubs["a"].Task(t.Context(), core.Principal{ID: "ann"}, other.ID())
			return err
		}
		if f := core.AsFault(read()); f == nil || f.Code != core.CodeUnreachable || time.Since(began) > time.Second {
			t.Errorf("a task that runs: got %v after %s, want it unreachable at once", f, time.Since(began))
		}
		if err := bob.Report(running.ID(), core.Done{Text: "so"}, nil); err != nil {
			t.Fatal(err)
		}
		until(t, there, other.ID(), core.KindDone)
		if err := read(); err != nil {
			t.Errorf("a task that has ended: got %v, want it from the journal", err)
		}
	})
}

func TestWhoWaitsForATaskWhenItsHubFallsSilentIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		asked := ask(t, w.person("c"), core.ToAgent("bob"))
		assigned(t, bob)
		w.net.Cut("a", "b")
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.hubs["a"].Task(ctx, core.Principal{ID: "ann"}, asked.ID())
		if f := core.AsFault(err); f == nil || f.Code != core.CodeUnreachable || time.Since(began) > 10*time.Second {
			t.Errorf("got %v after %s, want it unreachable within 10 s", err, time.Since(began))
		}
	})
}

func TestATaskThatDidNotReachItsHubEndsAfterItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		ann := w.person("a")
		w.net.Cut("a", "b")
		asked, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "why?", Deadline: time.Now().Add(5 * time.Second)}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if asked.HasEnded() {
			t.Fatalf("got %s while its owner may take it yet", kinds(asked))
		}
		time.Sleep(15 * time.Second)
		last := asked.Last()
		if b, ok := last.Body.(core.Failed); !ok || b.Fault.Code != core.CodeUnreachable {
			t.Fatalf("got %s, want it failed as unreachable", kinds(asked))
		}
		w.net.Heal()
		next := ann
		w.until("bob can be asked again", func() bool {
			_, err := next.Open(core.Request{To: core.ToAgent("bob"), Content: "and now?"}, hub.OpenOptions{})
			return err == nil
		})
		if got := assigned(t, bob); got.ID() == asked.ID() {
			t.Error("bob got the task that had ended")
		}
	})
}
