package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// A hub hands a task over, and the other one dies before the journal says that the task has moved. The first
// one still gets the end: from the other one when it comes back, or else from its heir.
func TestAHubLearnsTheEndOfATaskWhoseMoveItStoresLate(t *testing.T) {
	for _, c := range []struct {
		name string
		late func(journal.Record) bool // what the hub stores late
		back bool                      // the other one comes back
	}{
		{"it has stored what came before", movesTo("c"), true},
		{"it has stored nothing", func(journal.Record) bool { return true }, true},
		{"it has stored what came before, and the other one stays away", movesTo("c"), false},
		{"it has stored nothing, and the other one stays away", func(journal.Record) bool { return true }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				bob, ann := w.join("b", thinker("bob")), w.person("b")
				w.delayWrites("b", 3*time.Second, c.late)
				asked := ask(t, ann, core.ToCapability("think"))
				held := assigned(t, bob)
				w.join("c", thinker("cid"))
				if err := bob.Report(held.ID(), busy, nil); err != nil {
					t.Fatal(err)
				}
				w.until("b hands the task over", func() bool { return asked.Owner() == "c" })
				time.Sleep(100 * time.Millisecond) // c stores its copy, and b says that it has moved
				w.net.Kill("c")
				if c.back {
					w.start("c", 2)
				} else {
					w.hubs["c"].stopped.Store(true)
				}
				w.until("the task ends at b", asked.HasEnded)
				w.same(asked.ID(), "opened assigned retrying retrying failed")
			})
		})
	}
}

// A hub looks for a task in the journal for another one, in vain. Meanwhile it gets the task, and hands it
// to that hub. That it did not know the task does not end it there.
func TestATaskIsHandedToAHubThatHasAskedForItTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		cid, ann := w.join("c", thinker("cid")), w.person("a")
		slowly := func(by journal.Life) error {
			if by.Hub == "c" {
				time.Sleep(500 * time.Millisecond)
			}
			return nil
		}
		w.reading.Store(&slowly)
		w.delayWrites("b", time.Second, nil) // b stores its copy after c has said that it does not know the task
		w.net.CutOneWay("a", "c")
		asked := ask(t, ann, core.ToCapability("think"))
		read := make(chan error, 1)
		go func() {
			_, err := w.hubs["b"].Task(t.Context(), operator, asked.ID())
			read <- err
		}()
		bob := w.hubs["b"].Connect(hub.Identity{Principal: core.Principal{ID: "bob", Dialect: "test"}, Dialect: "test"})
		if err := bob.Join(thinker("bob"), hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		cid.Close(core.NewFault(core.CodeUnreachable, "it goes"))
		time.Sleep(550 * time.Millisecond) // c looks for the task, and then for a copy of it
		w.net.Heal()
		<-read
		answers(t, bob, "because")
		until(t, ann, asked.ID(), core.KindDone)
	})
}

// movesTo reports whether a record says that a task moves to a hub.
func movesTo(hub string) func(journal.Record) bool {
	return func(r journal.Record) bool {
		b, ok := r.Event.Body.(core.Retrying)
		return ok && b.Hub == hub
	}
}
