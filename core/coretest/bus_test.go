package coretest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

var storm = coretest.Weather{Least: time.Millisecond, Most: 30 * time.Millisecond, Lost: 200, Twice: 100}

// got sends n numbers from a to b, and returns what came when.
func got(t *testing.T, n *coretest.Network, messages int) (all []string) {
	began := time.Now()
	stop, err := n.Bus("b").Subscribe("s", func(data []byte, _ func([]byte)) {
		all = append(all, fmt.Sprintf("%s after %v", data, time.Since(began)))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for i := range messages {
		if err := n.Bus("a").Publish("s", []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Second)
	synctest.Wait()
	return all
}

func TestANetworkDoesTheSameForASeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(seed uint64) []string {
			n := coretest.NewNetwork(seed)
			n.SetWeather(storm)
			return got(t, n, 300)
		}
		first := run(1)
		if again := run(1); !slices.Equal(first, again) {
			t.Errorf("the same seed: got %q, want %q", again, first)
		}
		if other := run(2); slices.Equal(first, other) {
			t.Error("another seed: got the same, want another schedule")
		}
		if len(first) == 300 || len(first) < 200 {
			t.Errorf("messages of 300 in a storm: got %d, want some lost and some twice", len(first))
		}
	})
}

func TestANetworkKeepsTheOrderOfASender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := coretest.NewNetwork(1)
		n.SetWeather(coretest.Weather{Least: time.Millisecond, Most: 30 * time.Millisecond, Lost: 100})
		last := -1
		for _, m := range got(t, n, 300) {
			var i int
			if _, err := fmt.Sscan(m, &i); err != nil || i <= last {
				t.Errorf("after %d: got %q, want a later one", last, m)
			}
			last = i
		}
	})
}

func TestARequestInANetworkFindsAHubNobodyOrSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := coretest.NewNetwork(1)
		ask := func() (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			answer, err := n.Bus("a").Request(ctx, "s", []byte("?"))
			return string(answer), err
		}
		if _, err := ask(); !errors.Is(err, cluster.ErrNobody) {
			t.Errorf("before anybody listens: got %v, want nobody", err)
		}
		if _, err := n.Bus("b").Subscribe("s", func(data []byte, reply func([]byte)) { reply(append(data, '!')) }); err != nil {
			t.Fatal(err)
		}
		if answer, err := ask(); answer != "?!" || err != nil {
			t.Errorf("a hub that listens: got %q and %v, want ?!", answer, err)
		}
		n.Cut("a", "b")
		if _, err := ask(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a hub that is cut off: got %v, want silence", err)
		}
		n.Heal()
		n.Pause("b")
		if _, err := ask(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a hub that is paused: got %v, want silence", err)
		}
		n.Resume("b")
		if answer, err := ask(); answer != "?!" || err != nil {
			t.Errorf("a hub that goes on: got %q and %v, want ?!", answer, err)
		}
		n.Kill("b")
		if _, err := ask(); !errors.Is(err, cluster.ErrNobody) {
			t.Errorf("a hub that was killed: got %v, want nobody", err)
		}
	})
}

func TestAPausedHubGetsWhatWasSentMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := coretest.NewNetwork(1)
		n.Pause("b")
		if all := got(t, n, 3); len(all) != 0 {
			t.Errorf("while it is paused: got %q, want nothing", all)
		}
		var all []string
		if _, err := n.Bus("b").Subscribe("s", func(data []byte, _ func([]byte)) { all = append(all, string(data)) }); err != nil {
			t.Fatal(err)
		}
		n.Resume("b")
		time.Sleep(time.Second)
		synctest.Wait()
		if text := strings.Join(all, ""); text != "012" {
			t.Errorf("after the pause: got %q, want 012", text)
		}
	})
}

func TestClaimsAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := coretest.NewClaims(nil)
		coretest.CheckWatch(t, claims.Of("a"), claims.Of("b"))
	})
}

func TestOneOfTwoGetsAClaimAndAMinorityWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := coretest.NewNetwork(1)
		for _, hub := range []string{"a", "b", "c"} {
			if _, err := n.Bus(hub).Subscribe("s", func([]byte, func([]byte)) {}); err != nil {
				t.Fatal(err)
			}
		}
		claims := coretest.NewClaims(n)
		keeps := func(string) bool { return false }
		if holder, err := claims.Of("a").Claim(t.Context(), "x", "1", keeps); holder != "1" || err != nil {
			t.Errorf("a free name: got %q and %v, want 1", holder, err)
		}
		if holder, _ := claims.Of("b").Claim(t.Context(), "x", "2", keeps); holder != "1" {
			t.Errorf("a name that is held: got %q, want 1", holder)
		}
		if holder, _ := claims.Of("b").Claim(t.Context(), "x", "2", func(holder string) bool { return holder == "1" }); holder != "2" {
			t.Errorf("a holder that yields: got %q, want 2", holder)
		}
		if err := claims.Of("a").Release(t.Context(), "x", "1"); err != nil || claims.Holders()["x"] != "2" {
			t.Errorf("given back by who has it no more: got %q and %v, want 2", claims.Holders()["x"], err)
		}
		n.Isolate("c")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := claims.Of("c").Claim(ctx, "y", "3", keeps); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("in a minority: got %v, want to wait", err)
		}
	})
}
