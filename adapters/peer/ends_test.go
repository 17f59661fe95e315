package peer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// In a cluster the end of a task is shown once it is stored. A reader that comes later does not wait.

func TestWhoAwaitsAnEndThatIsStoredGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("a", core.Card{ID: "bob"})
		ann := w.person("a")
		asked, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "x"}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		assigned(t, bob)
		if err := bob.Report(asked.ID(), core.Done{Text: "y"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := asked.Recorded(t.Context(), asked.Last().End()); err != nil {
			t.Fatal(err)
		}
		ann.AwaitEnd(asked)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if b, err := ann.Next(ctx); err != nil || b.Task != asked {
			t.Errorf("got %v and the error %v, want the end of %s", b.Task, err, asked.ID())
		}
	})
}

func TestARefusedAgentLeavesTheOneThatHasTheIDKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		eve := w.hubs["b"].Connect(hub.Identity{Principal: core.Principal{ID: "eve"}, Dialect: "test"})
		if err := eve.Join(core.Card{ID: "bob"}, hub.JoinOptions{}); err == nil {
			t.Fatal("two agents have one id")
		}
		time.Sleep(10 * time.Second)
		for name, h := range w.hubs {
			if _, ok := h.Agent(core.Principal{ID: "ann"}, "bob"); !ok {
				t.Errorf("hub %s does not know bob any more", name)
			}
		}
	})
}

// deafTo is links over which a hub hears of no notice.
type deafTo struct {
	remote.Links
	hub string
}

func (d deafTo) Tell(to string, n rpc.Told) error {
	if n.What == "notices" && to == d.hub {
		return nil
	}
	return d.Links.Tell(to, n)
}

func TestANoticeThatWaitsForAHubThatSaysNothingEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		gone bool
	}{{"at its deadline", false}, {"when the hub is gone", true}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all, _ := connectedOver(t, func(_ string, o *hub.Options) { o.Limits.Deadline = 30 * time.Second },
					func(_ string, l remote.Links) remote.Links { return deafTo{l, "c"} }, "a", "b", "c")
				ann := all["a"].person("ann")
				published := publish(t, ann, core.ToHub(), "family.one")
				time.Sleep(time.Second)
				if row.gone {
					all["a"].hubs.HubGone("c")
					time.Sleep(time.Second)
				} else {
					time.Sleep(time.Minute)
				}
				until(t, ann, published.ID(), core.KindFailed)
				if !published.IsRecorded() {
					t.Error("its end is not stored")
				}
			})
		})
	}
}

// Of those who ask too much in vain the hub keeps nothing, see quota.Refusals.
func TestRefusedTasksThatAreNotStoredEndForWhoeverReadsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := connected(t, "a", "b")
		op := all["a"].Connect(hub.Identity{Principal: core.Principal{ID: "op", Operator: true}, Dialect: "test"})
		if err := op.WatchAll(); err != nil {
			t.Fatal(err)
		}
		ann := all["a"].person("ann")
		for range 150 {
			publish(t, ann, core.ToHub(), "family.one")
		}
		for who, s := range map[string]*hub.Session{"its publisher": ann, "an operator": op} {
			opened, ended := 0, 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			for b, err := s.Next(ctx); err == nil; b, err = s.Next(ctx) {
				for _, e := range b.Events {
					if e.Seq == 1 {
						opened++
					}
					if e.Body.Kind().Ends() {
						ended++
					}
				}
			}
			cancel()
			if opened != 150 || ended != opened {
				t.Errorf("%s got %d notices and %d ends, want 150 of each", who, opened, ended)
			}
		}
	})
}
