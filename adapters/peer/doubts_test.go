package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// A hub tells the others what its agent has answered, and dies before it has stored the end: then the
// task has failed, and what was answered is in no conversation.
func TestAnAnswerWhoseEndWasNotStoredLeavesItsThread(t *testing.T) {
	for _, c := range []struct {
		name   string
		stores bool // the hub stores what comes before the end
		back   bool // the hub comes back at once
	}{
		{name: "the end is not stored", stores: true},
		{name: "nothing is stored"},
		{name: "the hub comes back at once", stores: true, back: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				bob := w.join("b", core.Card{ID: "bob"})
				ann := w.person("a")
				w.talk(ann, bob, "bob", "talk", "one?", "1")
				time.Sleep(time.Second)
				w.delayWrites("b", time.Minute, func(r journal.Record) bool { return !c.stores || r.Event.Body.Kind().Ends() })
				asked, err := ann.Open(core.Request{To: core.ToAgent("bob"), Thread: "talk", Content: "two?"}, hub.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				held := assigned(t, bob)
				for held.ID() != asked.ID() {
					held = assigned(t, bob)
				}
				if c.stores {
					time.Sleep(time.Second) // the journal has what comes before the end
				}
				if err := bob.Report(held.ID(), core.Done{Text: "2"}, nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				for _, name := range []string{"a", "c"} {
					if got := said(w.hubs[name].Turns(t.Context(), core.Principal{ID: "ann"}, "talk")); got != "one?, 1, two?, 2" {
						t.Errorf("hub %s, before the hub dies: got the turns %q, want the answer among them", name, got)
					}
				}
				w.net.Kill("b")
				if c.back {
					w.start("b", 1)
				} else {
					w.untilGone("b")
				}
				w.until("the task ends", asked.HasEnded)
				if got := kinds(asked); asked.Last().Body.Kind() != core.KindFailed {
					t.Errorf("got %s, want it failed", got)
				}
				for name := range w.hubs {
					if name == "b" && !c.back {
						continue
					}
					w.until(name+" does not have the answer", func() bool {
						return said(w.hubs[name].Turns(t.Context(), core.Principal{ID: "ann"}, "talk")) == "one?, 1"
					})
				}
			})
		})
	}
}
