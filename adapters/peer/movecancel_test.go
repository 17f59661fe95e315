package peer_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestACancelReachesATaskThatHasMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", thinker("bob"))
		ann := w.person("a")
		asked := ask(t, ann, core.ToCapability("think"))
		held := assigned(t, bob)
		cid := w.join("c", thinker("cid"))
		if err := bob.Report(held.ID(), busy, nil); err != nil {
			t.Fatal(err)
		}
		assigned(t, cid)
		if err := ann.Cancel(asked.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		until(t, ann, asked.ID(), core.KindCancelled)
		w.same(asked.ID(), kinds(asked))
	})
}

func TestACancelThatItsHubHadNotStoredReachesTheNext(t *testing.T) {
	for name, at := range map[string]string{"at the next hub": "c", "at another one": "a"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				able := thinker("bob")
				able.Features = core.FeatureCancellation
				bob := w.join("b", able)
				ann := w.person(at)
				asked := ask(t, ann, core.ToCapability("think"))
				assigned(t, bob)
				w.join("c", thinker("cid"))
				time.Sleep(time.Second) // the journal has it
				w.delayWrites("b", time.Minute, nil)
				if err := ann.Cancel(asked.ID(), "enough"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // the hub has it
				w.net.Kill("b")
				w.until("the task ends", asked.HasEnded)
				if got := kinds(asked); !strings.HasSuffix(got, "cancelled") {
					t.Errorf("got %s, want it cancelled", got)
				}
			})
		})
	}
}

func TestACancelReachesATaskThatAnotherHubTookTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		dan, bob := w.join("b", core.Card{ID: "dan", Capabilities: []string{"think"}, MaxConcurrent: 1}), w.join("b", thinker("bob"))
		ann := w.person("a")
		ask(t, ann, core.ToAgent("dan"))
		assigned(t, dan) // which has no time for anything else
		asked := ask(t, ann, core.ToCapability("think"))
		held := assigned(t, bob)
		w.join("c", thinker("cid"))
		w.delayWrites("c", 6*time.Second, func(journal.Record) bool { return true })
		if err := bob.Report(held.ID(), busy, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if err := w.person("c").Cancel(asked.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		w.until("the task ends", asked.HasEnded)
		if got := kinds(asked); !strings.HasSuffix(got, "cancel_requested cancelled") {
			t.Errorf("got %s, want it cancelled", got)
		}
		if err := w.hubs["c"].Drain(core.Principal{ID: "eve", Operator: true}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.hubs["c"].Drained():
		case <-time.After(10 * time.Second):
			t.Error("got no end of the drain of the hub that was too late, want no task left there")
		}
	})
}

func TestACancelOnTheWayEndsTheTaskOnce(t *testing.T) {
	for wait := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "a", "b", "c")
			bob := w.join("b", thinker("bob"))
			ann := w.person("a")
			asked := ask(t, ann, core.ToCapability("think"))
			held := assigned(t, bob)
			w.join("c", thinker("cid"))
			if err := bob.Report(held.ID(), busy, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(wait) * 100 * time.Microsecond)
			if err := ann.Cancel(asked.ID(), "enough"); err != nil {
				t.Fatal(err)
			}
			until(t, ann, asked.ID(), core.KindCancelled)
			w.same(asked.ID(), kinds(asked))
		})
	}
}

func TestARequesterThatLeavesCancelsItsTaskAtAnotherHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", thinker("bob"))
		ann := w.person("a")
		ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		ann.Close(nil)
		w.until("it is cancelled", held.HasEnded)
		if got := held.Last().Body.Kind(); got != core.KindCancelled {
			t.Errorf("got %s, want it cancelled", got)
		}
	})
}
