package cluster_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// inBubble runs a test with a cluster of hubs a, b, c, ... that have met.
func inBubble(t *testing.T, hubs int, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := rigOf(t, []string{"a", "b", "c", "d", "e"}[:hubs]...)
		defer r.end()
		test(t, r)
	})
}

func TestAHubThatIsKilledIsTakenOverByOneSurvivorWithinTwoSeconds(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b, c := r.hubs["a"], r.hubs["b"], r.hubs["c"]
		a.mustJoin("x")
		a.mustJoin("y")
		r.untilAgreed()
		a.kill()
		took := r.within(2*time.Second, "the survivors know who took the life over", func() bool {
			by := r.store.taker(a.life)
			return by != (journal.Life{}) && b.saw(a.life.String()+" taken over by "+by.String()) && c.saw(a.life.String()+" taken over by "+by.String())
		})
		t.Logf("known after %v", took)
		for _, h := range []*testHub{b, c} {
			if !h.saw(a.life.String() + " gone") {
				t.Errorf("the events of %s: got %q, want that %s is gone", h.name, h.events(), a.life)
			}
			if h.saw("x at " + a.life.String() + " down") {
				t.Errorf("the events of %s: got %q, want the agents to vanish with their hub", h.name, h.events())
			}
			owner := h.owner(0)
			if by := r.store.taker(a.life); owner != by {
				t.Errorf("the owner of index 0 at %s: got %s, want %s", h.name, owner, by)
			}
		}
		if r.store.tries != 1 {
			t.Errorf("attempts to take the life over: got %d, want 1, since the second waits for its turn", r.store.tries)
		}
		r.untilAgreed()
	})
}

// A hub that is busy, or stands still, for up to 2.5 s costs nothing but time: the others go on, and so
// does it. So does a cluster of which all hubs stand still.
func TestAHubThatStandsStillForAWhileIsNotGoneAndRefusesNothing(t *testing.T) {
	for _, still := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}} {
		inBubble(t, 3, func(t *testing.T, r *rig) {
			for range 20 {
				for _, name := range still {
					r.net.Pause(name)
				}
				for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					for name, h := range r.hubs {
						if !slices.Contains(still, name) && !h.c.HasQuorum() {
							t.Fatalf("hub %s beside %q: got no quorum, want one", name, still)
						}
					}
				}
				for _, name := range still {
					r.net.Resume(name)
				}
				for range 50 {
					for name, h := range r.hubs {
						if !h.c.HasQuorum() {
							t.Fatalf("hub %s after %q stood still: got no quorum, want one", name, still)
						}
					}
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(37 * time.Millisecond)
			}
			if r.store.tries != 0 {
				t.Errorf("attempts to take a life over: got %d, want none", r.store.tries)
			}
		})
	}
}

// What a hub leads for others, they have somebody else lead before it counts as lost; one that is heard again is left in peace.
func TestOthersAreToldOnceOfAHubThatIsSilentForTwoSeconds(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		for i, still := range []time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond, 3 * time.Second} {
			r.net.Pause("a")
			time.Sleep(still)
			r.net.Resume("a")
			time.Sleep(time.Second)
			b := r.hubs["b"]
			b.mu.Lock()
			told := b.silent["a"]
			b.mu.Unlock()
			if told != [2]int{i, i} {
				t.Errorf("after a silence of %v: told of it, and of its end, %v times, want %d each", still, told, i)
			}
		}
	})
}

// A machine that is lost says nothing, and its connections stay open.
func TestAHubThatIsSilentIsTakenOverWithinFiveSeconds(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a := r.hubs["a"]
		r.net.Isolate("a")
		took := r.within(5*time.Second, "somebody takes a over", func() bool { return r.store.taker(a.life) != (journal.Life{}) })
		if took < 2500*time.Millisecond {
			t.Errorf("taken over after %v: want not before 2.5 s", took)
		}
	})
}

func TestALifeThatNobodyHasHeardYetIsGivenTheTimeOfAStart(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.hubs["b"].kill()
		next := r.store.begin("b") // it stands in the journal, and reads that before its first beat
		r.until("its former life is known to be over", func() bool {
			all, _ := r.hubs["a"].c.Hubs()
			return all[1].Epoch == next.Epoch
		})
		time.Sleep(7 * time.Second)
		if by := r.store.taker(next); by != (journal.Life{}) || r.hubs["a"].state("b") == cluster.Gone {
			t.Errorf("7 s after it was known: got it %s and taken over by %q, want that it has time to start", r.hubs["a"].state("b"), by)
		}
		r.within(3*time.Second, "it is taken over", func() bool { return r.store.taker(next) != (journal.Life{}) })
	})
}

func TestALifeThatIsAnnouncedIsNotTakenOverWhileItReadsItsJournal(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.hubs["b"].kill()
		r.until("its former life is taken over", func() bool { return r.hubs["a"].state("b") == cluster.Gone })
		next := r.store.begin("b")
		c, err := cluster.New(cluster.Settings{
			Life: next, Index: 1, Bus: r.net.Bus("b"), Claims: r.claims.Of("b"),
			Tasks: func() int { panic("there is no engine yet") },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var announced sync.WaitGroup
		announced.Go(func() {
			if err := c.Announce(ctx); err != nil {
				t.Errorf("announcing it: got %v, want no error", err)
			}
		})
		for range 60 {
			time.Sleep(time.Second)
			for _, at := range []string{"a", "c"} {
				if got := r.hubs[at].state("b"); got != cluster.Starting {
					t.Fatalf("at hub %s: got it %s, want it starting", at, got)
				}
				if r.hubs[at].saw(next.String() + " up") {
					t.Fatalf("hub %s was told that it is up, want that only once it takes part", at)
				}
			}
		}
		if by := r.store.taker(next); by != (journal.Life{}) {
			t.Errorf("after a minute: got it taken over by %s, want nobody", by)
		}
		cancel() // it dies
		announced.Wait()
		r.within(2*time.Second, "it is taken over", func() bool { return r.store.taker(next) != (journal.Life{}) })
	})
}

func TestALifeThatWasAnnouncedTakesPart(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.hubs["b"].kill()
		b := r.start("b")
		go b.c.Announce(t.Context()) // before Run, or as it begins
		r.until("it is up", func() bool { return r.hubs["a"].state("b") == cluster.Up && b.c.HasQuorum() })
		time.Sleep(time.Second)
		if got := r.hubs["c"].state("b"); got != cluster.Up {
			t.Errorf("got it %s, want it up", got)
		}
	})
}

func TestAHubThatRequestsDoNotReachIsLookedAfterAtOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		a.mustJoin("x")
		r.untilAgreed()
		a.kill()
		time.Sleep(120 * time.Millisecond)
		joined := make(chan error, 1)
		go func() { joined <- b.join(t.Context(), "x", team("ben")) }() // which asks a
		took := r.within(time.Second, "a is gone", func() bool { return b.saw(a.life.String() + " gone") })
		if took > 500*time.Millisecond {
			t.Errorf("gone after %v: want less than without the request", took)
		}
		if err := <-joined; err != nil {
			t.Errorf("joining there: got %v, want no error", err)
		}
	})
}

func TestAHubThatLosesBeatsButAnswersIsNotGone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.net.SetWeather(lossy)
		time.Sleep(60 * time.Second)
		for _, h := range r.hubs {
			for _, e := range h.events() {
				if len(e) > 4 && e[len(e)-4:] == "gone" {
					t.Errorf("%s: got %q, want nobody to be gone", h.name, e)
				}
			}
		}
	})
}

func TestAnIsolatedHubSaysThatItsViewIsStaleAndTakesNobodyOver(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b, c := r.hubs["a"], r.hubs["b"], r.hubs["c"]
		r.net.Isolate("a")
		r.within(3500*time.Millisecond, "a has no quorum", func() bool { return !a.c.HasQuorum() })
		r.within(time.Second, "the others take a over", func() bool { return r.store.taker(a.life) != (journal.Life{}) })
		if _, stale := a.c.Hubs(); !stale {
			t.Error("the view of the isolated hub: got a fresh one, want a stale one")
		}
		for _, of := range []*testHub{b, c} {
			if s := a.state(of.name); s != cluster.Suspect {
				t.Errorf("%s at the isolated hub: got %s, want suspect", of.name, s)
			}
			if _, stale := of.c.Hubs(); stale || !of.c.HasQuorum() {
				t.Errorf("the view of %s: got stale %t and quorum %t, want a fresh one with a quorum", of.name, stale, of.c.HasQuorum())
			}
		}
		time.Sleep(30 * time.Second)
		r.net.Heal()
		r.until("a learns that it was deposed", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.deposed == r.store.taker(a.life) })
		if a.c.HasQuorum() {
			t.Error("the deposed hub: got a quorum, want none")
		}
		time.Sleep(time.Second)
		for _, of := range []*testHub{b, c} {
			if got := of.events(); slices.Contains(got[slices.Index(got, "a/1 gone"):], "a/1 up") || of.state("a") != cluster.Gone {
				t.Errorf("the events of %s: got %q, want that a life which was taken over does not come up", of.name, got)
			}
		}
		a.leave()
		a = r.start("a")
		r.until("its new life owns its index", func() bool { return b.owner(0) == a.life })
	})
}

func TestAPausedHubIsDeposedAndJudgesNobodyWhenItIsBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b, c := r.hubs["a"], r.hubs["b"], r.hubs["c"]
		r.net.Pause("a")
		time.Sleep(10 * time.Second)
		by := r.store.taker(a.life)
		if by != b.life && by != c.life {
			t.Fatalf("who took the paused hub over: got %s, want b or c", by)
		}
		r.net.Resume("a")
		r.within(300*time.Millisecond, "it learns that it was deposed", func() bool { return a.saw("deposed by " + by.String()) })
		for _, o := range []*testHub{b, c} {
			if a.saw(o.life.String()+" gone") || r.store.taker(o.life) != (journal.Life{}) {
				t.Errorf("%s after the pause: got gone, want that it was never judged", o.name)
			}
		}
	})
}

func TestWhoTookALifeOverIsTakenOverWithWhatItHad(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, r *rig) {
		a := r.hubs["a"]
		a.kill()
		r.until("a is taken over", func() bool { return r.store.taker(a.life) != (journal.Life{}) })
		first := r.store.taker(a.life)
		r.hubs[first.Hub].kill()
		r.within(4*time.Second, "what a had has another owner", func() bool {
			second := r.store.taker(a.life)
			for _, h := range r.hubs {
				if second == first || h.owner(0) != second {
					return false
				}
			}
			return true
		})
	})
}

func TestHubsThatDoNotReachEachOtherButAThirdAreNotGone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.net.Cut("a", "b")
		time.Sleep(10 * time.Second)
		if s := r.hubs["a"].state("b"); s != cluster.Suspect {
			t.Errorf("b at a: got %s, want suspect", s)
		}
		if r.store.tries != 0 {
			t.Errorf("attempts to take a life over: got %d, want none, since c hears both", r.store.tries)
		}
		for name, h := range r.hubs {
			if !h.c.HasQuorum() {
				t.Errorf("%s: got no quorum, want one", name)
			}
		}
	})
}

func TestAHubThatLeavesIsGoneAtOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		b := r.hubs["b"]
		b.mustJoin("x")
		r.untilAgreed()
		b.c.SetDraining(true)
		r.within(50*time.Millisecond, "b is draining", func() bool { return r.hubs["a"].saw(b.life.String() + " is draining") })
		b.leave()
		r.within(50*time.Millisecond, "b is gone", func() bool { return r.hubs["a"].saw(b.life.String() + " gone") })
	})
}

func TestAHubThatWasForgottenNoLongerCounts(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b, c := r.hubs["a"], r.hubs["b"], r.hubs["c"]
		if err := a.c.Forget(t.Context(), "b"); err == nil {
			t.Error("forgetting a hub that is up: got no error, want one")
		}
		c.kill()
		r.until("c is taken over", func() bool { return a.saw(c.life.String() + " taken over by " + r.store.taker(c.life).String()) })
		if err := a.c.Forget(t.Context(), "c"); err != nil {
			t.Fatalf("forgetting: got %v, want no error", err)
		}
		r.until("b forgets it too", func() bool { return b.state("c") == 0 })
		c = r.start("c")
		r.until("it counts again once it is back", func() bool { return b.state("c") == cluster.Up && a.state("c") == cluster.Up })
		_ = c
	})
}

// lines is a log that keeps its lines.
type lines struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.all = append(l.all, text)
	return nil
}

func TestAHubOfALaterMajorVersionIsLoggedOnceAndDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		log := &lines{}
		r.change = func(s *cluster.Settings) {
			if s.Life.Hub == "a" {
				s.Log = slog.New(log)
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			r.start(name)
		}
		for range 10 {
			time.Sleep(250 * time.Millisecond)
			if err := r.net.Bus("z").Publish("hubs", []byte(`{"v":"3.0","kind":"beat","hub":"z","epoch":1}`)); err != nil {
				t.Fatal(err)
			}
		}
		if !r.hubs["a"].c.HasQuorum() || r.hubs["a"].state("z") != 0 {
			t.Errorf("beside the hub of another version: got quorum %t and %s for it, want a quorum and that it is not known", r.hubs["a"].c.HasQuorum(), r.hubs["a"].state("z"))
		}
		log.mu.Lock()
		defer log.mu.Unlock()
		if len(log.all) != 1 || !strings.Contains(log.all[0], "ERROR") || !strings.Contains(log.all[0], "version 3.0") || !strings.Contains(log.all[0], "hub=z") {
			t.Errorf("the log: got %q, want one line with the hub and its version", log.all)
		}
	})
}
