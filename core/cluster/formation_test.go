package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestWithTwoOfThreeHubsLostThereIsNoQuorumUntilOneIsBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b, c := r.hubs["a"], r.hubs["b"], r.hubs["c"]
		a.kill()
		b.kill()
		r.within(time.Second, "c has no quorum", func() bool { return !c.c.HasQuorum() })
		time.Sleep(10 * time.Second)
		if r.store.taker(a.life) != (journal.Life{}) || r.store.taker(b.life) != (journal.Life{}) {
			t.Error("taken over: got a life, want none without a majority")
		}
		b2 := r.start("b")
		r.until("c has a quorum", func() bool { return c.c.HasQuorum() && b2.c.HasQuorum() })
		r.until("a is taken over", func() bool { return r.store.taker(a.life) != (journal.Life{}) })
		if !c.saw(b.life.String() + " gone") {
			t.Errorf("the events of c: got %q, want the former life of b to be gone", c.events())
		}
	})
}

func TestAClusterIsFormedByThreeHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		a, b := r.start("a"), r.start("b")
		time.Sleep(5 * time.Second)
		if a.c.HasQuorum() || b.c.HasQuorum() {
			t.Error("two hubs: got a quorum, want none before three have met")
		}
		r.start("c")
		r.until("there is a quorum", func() bool { return a.c.HasQuorum() && b.c.HasQuorum() })
	})
}

func TestAHubThatRestartsAloneIsBackInTheClusterThatWasFormed(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.hubs["c"].kill()
		r.hubs["b"].leave()
		b := r.start("b")
		r.within(3*time.Second, "b has a quorum with a alone", b.c.HasQuorum)
	})
}

func TestWhenTheWholeClusterRestartsEachHubOwnsItsTasks(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		for _, name := range []string{"a", "b", "c"} {
			r.hubs[name].kill()
		}
		for _, name := range []string{"a", "b", "c"} {
			r.start(name)
		}
		r.until("there is a quorum", r.hubs["a"].c.HasQuorum)
		r.untilAgreed()
		time.Sleep(5 * time.Second)
		for i, name := range []string{"a", "b", "c"} {
			if owner := r.hubs["a"].owner(i); owner != r.hubs[name].life {
				t.Errorf("the owner of index %d: got %s, want %s", i, owner, r.hubs[name].life)
			}
		}
		if r.store.tries != 0 {
			t.Errorf("attempts to take a life over: got %d, want none", r.store.tries)
		}
	})
}

func TestAHubThatTheJournalKnowsIsTakenOverThoughItNeverCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		lost := r.store.begin("d")
		r.change = func(s *cluster.Settings) { s.Known = []cluster.Hub{{Name: "d", Index: 3, Epoch: lost.Epoch}} }
		for _, name := range []string{"a", "b", "c"} {
			r.start(name)
		}
		r.until("it is taken over", func() bool { return r.store.taker(lost) != (journal.Life{}) })
		r.until("its owner is known", func() bool {
			return r.hubs["a"].owner(3) == r.store.taker(lost)
		})
	})
}

func TestAClusterThatTheJournalKnowsNeedsOnlyAMajorityToStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		for _, name := range []string{"a", "b", "c"} {
			r.store.begin(name)
		}
		r.change = func(s *cluster.Settings) { s.Known = r.store.known() }
		a := r.start("a")
		time.Sleep(2 * time.Second)
		if a.c.HasQuorum() {
			t.Error("one of three: got a quorum, want none")
		}
		b := r.start("b")
		r.until("two of three have a quorum", func() bool { return a.c.HasQuorum() && b.c.HasQuorum() })
		r.until("the third is taken over", func() bool { return r.store.taker(journal.Life{Hub: "c", Epoch: 1}) != (journal.Life{}) })
	})
}

func TestAHubThatHearsAllButIsNotHeardHasNoQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.net.CutOneWay("a", "b")
		r.net.CutOneWay("a", "c")
		r.within(3500*time.Millisecond, "a has no quorum", func() bool { return !r.hubs["a"].c.HasQuorum() })
		r.within(time.Second, "a knows that it was deposed", func() bool {
			by := r.store.taker(r.hubs["a"].life)
			return by != (journal.Life{}) && r.hubs["a"].saw("deposed by "+by.String())
		})
	})
}

func TestTwoHubsOnAnExternalBusAreEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		r.change = func(s *cluster.Settings) { s.External = true }
		a, b := r.start("a"), r.start("b")
		r.until("both have a quorum", func() bool { return a.c.HasQuorum() && b.c.HasQuorum() })
		a.mustJoin("x")
		r.untilAgreed()
		r.net.Cut("a", "a") // its connection to the bus
		r.net.Cut("a", "b")
		r.within(3500*time.Millisecond, "a has no quorum", func() bool { return !a.c.HasQuorum() })
		r.within(500*time.Millisecond, "a is gone", func() bool { return b.saw(a.life.String() + " gone") })
		if s := a.state("b"); s == cluster.Gone {
			t.Errorf("b at a: got %s, want that a cut-off hub judges nobody", s)
		}
		r.net.Heal()
	})
}

func TestAHubAloneHasAQuorumAndNoBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		r.change = func(s *cluster.Settings) { s.Bus, s.Claims = nil, nil }
		a := r.start("a")
		a.mustJoin("x")
		a.part("x")
		if all, stale := a.c.Hubs(); !a.c.HasQuorum() || stale || len(all) != 1 {
			t.Errorf("got %v, stale %t, quorum %t: want itself alone, with a quorum", all, stale, a.c.HasQuorum())
		}
	})
}
