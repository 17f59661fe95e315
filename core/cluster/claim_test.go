package cluster_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func team(id string) core.Principal { return core.Principal{ID: id, Authenticated: true} }

func wantCode(t *testing.T, what string, err error, code core.Code) {
	t.Helper()
	if err == nil || core.AsFault(err).Code != code {
		t.Errorf("%s: got %v, want a %s Fault", what, err, code)
	}
}

// at returns the hubs that have the agent.
func (r *rig) at(id core.AgentID) (names []string) {
	for name, h := range r.hubs {
		h.mu.Lock()
		if _, has := h.own[id]; has {
			names = append(names, name)
		}
		h.mu.Unlock()
	}
	return names
}

func TestAnAgentThatComesToAnotherHubLeavesTheOldOneFirst(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		if err := a.join(t.Context(), "x", team("ann")); err != nil {
			t.Fatal(err)
		}
		r.untilAgreed()
		if err := b.join(t.Context(), "x", team("ann")); err != nil {
			t.Fatalf("the same principal at another hub: got %v, want no error", err)
		}
		if got := r.at("x"); len(got) != 1 || got[0] != "b" {
			t.Errorf("who has x: got %q, want b alone", got)
		}
		if !a.saw("asked for x: true") {
			t.Errorf("the events of a: got %q, want that it was asked for x", a.events())
		}
		r.untilAgreed()
	})
}

func TestAnAgentOfAnotherPrincipalKeepsItsID(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		if err := a.join(t.Context(), "x", team("ann")); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "another principal", b.join(t.Context(), "x", team("ben")), core.CodeConflict)
		wantCode(t, "one that proved nothing", b.join(t.Context(), "x", core.Principal{ID: "ann"}), core.CodeConflict)
		if got := r.at("x"); len(got) != 1 || got[0] != "a" {
			t.Errorf("who has x: got %q, want a alone", got)
		}
		a.part("x")
		time.Sleep(100 * time.Millisecond)
		if err := b.join(t.Context(), "x", team("ben")); err != nil {
			t.Errorf("once it has left: got %v, want no error", err)
		}
	})
}

func TestTheOldHubIsAskedAboutAnAgentThatProvedNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		if err := a.join(t.Context(), "x", core.Principal{ID: "x"}); err != nil {
			t.Fatal(err)
		}
		a.keeps = true // its connection answers a ping
		wantCode(t, "an agent that is alive", b.join(t.Context(), "x", core.Principal{ID: "x"}), core.CodeConflict)
		a.keeps = false
		if err := b.join(t.Context(), "x", core.Principal{ID: "x"}); err != nil {
			t.Errorf("an agent that is silent: got %v, want no error", err)
		}
		if got := r.at("x"); len(got) != 1 || got[0] != "b" {
			t.Errorf("who has x: got %q, want b alone", got)
		}
	})
}

func TestOfTwoAgentsThatClaimOneIDOneGetsIt(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		errs := make(chan error, 3)
		for _, name := range []string{"a", "b", "c"} {
			go func() { errs <- r.hubs[name].join(t.Context(), "x", team(name)) }()
		}
		won := 0
		for range 3 {
			if err := <-errs; err == nil {
				won++
			} else {
				wantCode(t, "who came too late", err, core.CodeConflict)
			}
		}
		if got := r.at("x"); won != 1 || len(got) != 1 {
			t.Errorf("who has x: got %q and %d without an error, want one", got, won)
		}
	})
}

// Who is refused an id takes nothing from others who want it at the same hub, and may have it.
func TestARefusedClaimRefusesNoneOfAnotherPrincipal(t *testing.T) {
	for _, later := range []time.Duration{300 * time.Microsecond, 700 * time.Microsecond, 1200 * time.Microsecond, 5 * time.Millisecond} {
		inBubble(t, 3, func(t *testing.T, r *rig) {
			a, b := r.hubs["a"], r.hubs["b"]
			b.keeps = true
			if err := b.join(t.Context(), "x", team("ann")); err != nil {
				t.Fatal(err)
			}
			r.untilAgreed()
			ben := make(chan error, 1)
			go func() { ben <- a.join(t.Context(), "x", team("ben")) }()
			time.Sleep(later)
			if err := a.join(t.Context(), "x", team("ann")); err != nil {
				t.Errorf("%s behind ben: got %v, want that ann gets the id from hub b", later, err)
			}
			<-ben
		})
	}
}

func TestTheIDsOfALifeThatIsOverAreFree(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		a.mustJoin("x")
		a.mustJoin("y")
		r.untilAgreed()
		a.kill()
		began := time.Now()
		if err := b.join(t.Context(), "x", team("ben")); err != nil {
			t.Fatalf("an agent of a hub that was killed: got %v, want no error", err)
		}
		if r.store.taker(a.life) == (journal.Life{}) {
			t.Error("the id was free before the life was taken over: want it only after")
		}
		t.Logf("joined %v after the kill", time.Since(began))
		r.until("what is left of the life is given back", func() bool { _, left := r.claims.Holders()["at.y"]; return !left })
		if got := r.claims.Holders()["at.x"]; !strings.Contains(got, `"hub":"b"`) {
			t.Errorf("the claim of x: got %s, want that of b", got)
		}
	})
}

func TestAnAgentOfAHubThatRestartedComesBackAtOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.hubs["a"].mustJoin("x")
		r.hubs["a"].kill()
		a := r.start("a")
		began := time.Now()
		a.mustJoin("x")
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("joining at the new life: took %v, want no wait", took)
		}
	})
}

func TestWhileClaimsStallJoiningWaitsAndNothingElse(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		b.mustJoin("old")
		r.claims.Stall(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		wantCode(t, "joining", a.join(ctx, "x", team("ann")), core.CodeUnreachable)
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("joining: waited %v, want until the context ended", waited)
		}
		joined := make(chan error, 1)
		go func() { joined <- a.join(t.Context(), "y", team("ann")) }()
		b.c.SetLoad("old", cluster.Load{Active: 1})
		b.part("old")
		r.within(100*time.Millisecond, "others come to know what happens", func() bool { return r.disagreement() == "" })
		if !a.c.HasQuorum() {
			t.Error("while claims stall: got no quorum, want one")
		}
		r.claims.Stall(false)
		if err := <-joined; err != nil {
			t.Errorf("joining once claims work: got %v, want no error", err)
		}
		r.until("old is given back", func() bool { _, held := r.claims.Holders()["at.old"]; return !held })
	})
}

func TestAHubGetsTheSameIndexAgainAndNoOtherHubGetsIt(t *testing.T) {
	claims := coretest.NewClaims(nil).Of("")
	took := false
	take := func(name string) int {
		i, err := cluster.TakeIndex(t.Context(), claims, name, name == "a" && !took)
		took = true
		if err != nil {
			t.Fatalf("taking an index for %s: got %v, want no error", name, err)
		}
		return i
	}
	for range 2 {
		for want, name := range []string{"a", "b", "c"} {
			if got := take(name); got != want {
				t.Errorf("the index of %s: got %d, want %d", name, got, want)
			}
		}
	}
	// Between the claim of the name and that of the index another hub came.
	if _, err := claims.Claim(t.Context(), "hub.late", "1", func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if got := take("late"); got != 3 {
		t.Errorf("the index of a hub that lost its first choice: got %d, want 3", got)
	}
	if got := take("late"); got != 3 {
		t.Errorf("the same once more: got %d, want 3", got)
	}
	if _, err := cluster.TakeIndex(t.Context(), claims, "a.b", false); err == nil {
		t.Error("a name with a dot: got no error, want one")
	}
}

func TestHubsThatTakeTheirFirstIndexAtOnceGetDifferentOnes(t *testing.T) {
	claims := coretest.NewClaims(nil).Of("")
	got := make(chan int)
	for _, name := range strings.Fields("a b c d e f g h") {
		go func() {
			i, err := cluster.TakeIndex(t.Context(), claims, name, false)
			if err != nil {
				t.Error(err)
			}
			got <- i
		}()
	}
	seen := map[int]bool{}
	for range 8 {
		i := <-got
		if seen[i] {
			t.Errorf("the index %d: got it twice, want once", i)
		}
		seen[i] = true
	}
}

func TestASecondHubOfANameIsSeenBeforeItStarts(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		h, err := cluster.Present(t.Context(), r.net.Bus("new"), "a")
		if err != nil || h.Life() != r.hubs["a"].life || h.Address != "a:8080" {
			t.Errorf("who is a: got %+v and %v, want the one that runs", h, err)
		}
		if _, err := cluster.Present(t.Context(), r.net.Bus("new"), "d"); err == nil {
			t.Error("who is d: got no error, want that nobody is")
		}
	})
}

func TestAnIDThatWasClaimedAndNotUsedIsThatOfTheOlderConnectionAgain(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		if err := a.join(t.Context(), "x", team("ann")); err != nil {
			t.Fatal(err)
		}
		if err := a.c.Claim(t.Context(), cluster.Entry{Card: core.Card{ID: "x"}, Connection: 2, Principal: team("ann")}); err != nil {
			t.Fatal(err)
		}
		a.c.Unclaim("x", 2) // the engine keeps the older connection
		time.Sleep(50 * time.Millisecond)
		if got := r.claims.Holders()["at.x"]; !cluster.Claimed(got, a.life, 1) {
			t.Errorf("the claim: got %s, want that of connection 1", got)
		}
		wantCode(t, "somebody else", b.join(t.Context(), "x", team("ben")), core.CodeConflict)
	})
}

func TestAConnectionThatClaimsAgainAtOnceKeepsTheID(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a := r.hubs["a"]
		for range 20 {
			if err := a.c.Claim(t.Context(), cluster.Entry{Card: core.Card{ID: "x"}, Connection: 2, Principal: team("ann")}); err != nil {
				t.Fatal(err)
			}
			a.c.Unclaim("x", 2)
		}
		if err := a.c.Claim(t.Context(), cluster.Entry{Card: core.Card{ID: "x"}, Connection: 2, Principal: team("ann")}); err != nil {
			t.Fatal(err)
		}
		a.c.Put(cluster.Entry{Card: core.Card{ID: "x"}, Connection: 2, Principal: team("ann")})
		time.Sleep(time.Second)
		if got := r.claims.Holders()["at.x"]; !cluster.Claimed(got, a.life, 2) {
			t.Errorf("the claim: got %q, want that of the connection", got)
		}
	})
}

func TestALifeThatIsOverDoesNotTakeFromItsSuccessor(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.hubs["a"].kill()
		zombie, err := cluster.New(cluster.Settings{Life: journal.Life{Hub: "a", Epoch: 1}, Bus: r.net.Bus("z"), Claims: r.claims.Of("a")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = zombie.Run(ctx) })
		a := r.start("a")
		a.mustJoin("x")
		wantCode(t, "the former life", zombie.Claim(t.Context(), cluster.Entry{Card: core.Card{ID: "x"}, Connection: 9, Principal: team("x")}), core.CodeUnreachable)
		if got := r.claims.Holders()["at.x"]; !cluster.Claimed(got, a.life, 1) || len(r.at("x")) != 1 {
			t.Errorf("the claim: got %s at %q, want that of the present life", got, r.at("x"))
		}
	})
}
