package peer_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// The handover of a task arrives while the hub that is to get the task has taken the other one over, and
// stores that the task is its own.
func TestAHandoverOfALifeThatIsOverDoesNotTakeThePlaceOfTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, ann := w.join("b", thinker("bob")), w.person("b")
		asked := ask(t, ann, core.ToCapability("think"))
		assigned(t, bob)
		cid := w.join("c", thinker("cid"))
		time.Sleep(time.Second)
		late := remote.Transfer{From: asked.From(), Opener: "b"}
		said := asked.Log()
		for e := range said.All() {
			late.Events = append(late.Events, e)
		}
		last := late.Events[len(late.Events)-1]
		late.Events = append(late.Events, core.Event{Seq: last.End() + 1, Epoch: last.Epoch, At: time.Now(), Body: core.Retrying{Agent: "bob", Fault: busy.Fault, Hub: "c"}})
		var claims atomic.Bool
		slowly := func(wr coretest.Write) error {
			if wr.By.Hub == "c" && slices.ContainsFunc(wr.Records, movesTo("c")) {
				claims.Store(true)
				time.Sleep(time.Second)
			}
			return nil
		}
		w.before.Store(&slowly)
		w.net.Kill("b")
		w.hubs["b"].stopped.Store(true)
		w.until("c claims the task", claims.Load)
		w.hubs["c"].others.Accept("b", late)
		answers(t, cid, "because")
		w.wentOn(asked.ID())
	})
}

// A hub claims a task of a hub that is gone. The claim is stored, but the acknowledgement is lost, and when the
// hub tries again the other one is back and has fenced it off. The claim counts.
func TestAClaimThatWasStoredCountsWithoutItsAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, ann := w.join("b", thinker("bob")), w.person("a")
		asked := ask(t, ann, core.ToCapability("think"))
		assigned(t, bob)
		cid := w.join("c", thinker("cid"))
		time.Sleep(time.Second)
		var claimed atomic.Bool
		back := make(chan struct{})
		unheard := func(wr coretest.Write) error {
			if wr.Hub == "b" && wr.By.Hub != "b" && len(wr.Records) > 0 && !claimed.Swap(true) {
				<-back
				return errors.New("nobody says whether it is stored")
			}
			return nil
		}
		w.after.Store(&unheard)
		deaf := func(by journal.Life) error {
			if by.Hub == "c" {
				return errors.New("the journal cannot be read")
			}
			return nil
		}
		w.net.Kill("b")
		w.until("the claim is stored", claimed.Load)
		w.reading.Store(&deaf) // else c finds it there before it tries again, or b tells it
		w.net.Isolate("b")
		w.start("b", 1)
		close(back)
		time.Sleep(time.Second)
		w.reading.Store(nil)
		w.net.Heal()
		answers(t, cid, "because")
		w.wentOn(asked.ID())
	})
}
