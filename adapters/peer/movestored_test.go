package peer_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// A hub hands a task over, and the other one dies and comes back before the journal says that the task
// has moved. The first one gets the end that the other one gives it all the same.
func TestAHubLearnsTheEndOfATaskWhoseMoveItStoresLate(t *testing.T) {
	for _, c := range []struct {
		name string
		late func(journal.Record) bool // what the hub stores late
		want string
	}{
		{"it has stored what came before", movesTo("c"), "opened assigned retrying retrying failed"},
		{"it has stored nothing", func(journal.Record) bool { return true }, "opened assigned retrying retrying failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				bob, ann := w.join("b", thinker("bob")), w.person("b")
				before := func(wr journal.Write) error {
					if wr.By.Hub == "b" && slices.ContainsFunc(wr.Records, c.late) {
						time.Sleep(3 * time.Second)
					}
					return nil
				}
				w.before.Store(&before)
				asked := ask(t, ann, core.ToCapability("think"))
				held := assigned(t, bob)
				w.join("c", thinker("cid"))
				if err := bob.Report(held.ID(), busy, nil); err != nil {
					t.Fatal(err)
				}
				w.until("b hands the task over", func() bool { return asked.Owner() == "c" })
				time.Sleep(100 * time.Millisecond) // c stores its copy, and b says that it has moved
				w.net.Kill("c")
				w.start("c", 2)
				w.until("the task ends at b", asked.HasEnded)
				w.same(asked.ID(), c.want)
			})
		})
	}
}

// movesTo reports whether a record says that a task moves to a hub.
func movesTo(hub string) func(journal.Record) bool {
	return func(r journal.Record) bool {
		b, ok := r.Event.Body.(core.Retrying)
		return ok && b.Hub == hub
	}
}
