package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// A peer of which only the id is known becomes an agent of its hub with its first task, and one of the
// cluster when it says what it can do: then it needs the id in the whole cluster.
func TestAnAgentThatIsKnownByItsIDAloneIsOneOfTheClusterOnceItJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		card := core.Card{ID: "kit", MaxConcurrent: 2}
		kit := w.hubs["a"].Connect(hub.Identity{Principal: core.Principal{ID: "kit"}, Dialect: "test"})
		if err := kit.Join(card, hub.JoinOptions{OnlyByID: true}); err != nil {
			t.Fatal(err)
		}
		ask(t, w.person("a"), core.ToAgent("kit"))
		assigned(t, kit)
		time.Sleep(time.Second)
		if e, ok := w.hubs["b"].Agent(operator, "kit"); ok {
			t.Errorf("before it joins: hub b knows %+v, want no agent without a claim", e)
		}
		other := w.hubs["b"].Connect(hub.Identity{Principal: core.Principal{ID: "other"}, Dialect: "test"})
		if err := other.Join(core.Card{ID: "kit"}, hub.JoinOptions{}); err != nil {
			t.Errorf("before it joins: the id at hub b: got %v, want it free", err)
		}
		if f := core.AsFault(kit.Join(card, hub.JoinOptions{})); f == nil || f.Code != core.CodeConflict {
			t.Errorf("with an agent of that id at hub b: got %v, want a conflict", f)
		}
		other.Close(core.NewFault(core.CodeUnreachable, "it leaves"))
		w.until("it joins", func() bool { return kit.Join(card, hub.JoinOptions{}) == nil })
		w.until("hub b knows it", func() bool {
			_, ok := w.hubs["b"].Agent(operator, "kit")
			return ok
		})
		another := w.hubs["b"].Connect(hub.Identity{Principal: core.Principal{ID: "another"}, Dialect: "test"})
		if f := core.AsFault(another.Join(core.Card{ID: "kit"}, hub.JoinOptions{})); f == nil || f.Code != core.CodeConflict {
			t.Errorf("once it has joined: the id at hub b: got %v, want a conflict", f)
		}
		ask(t, w.person("c"), core.ToAgent("kit"))
		assigned(t, kit)
	})
}
