package parallax

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepeatedRefusalsAreDelayedLongerUpToALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Refusals
		for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
			began := time.Now()
			if err := r.wait(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(began); got != want {
				t.Errorf("after %d refusals: delayed %s, want %s", i, got, want)
			}
			r.add("a")
		}
		if got := r.delay("b"); got != 0 {
			t.Errorf("another key: delayed %s, want no delay", got)
		}
		time.Sleep(refusalAge)
		if got := r.delay("a"); got != 0 {
			t.Errorf("later: delayed %s, want no delay", got)
		}
	})
}

func TestADelayEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Refusals
		r.add("a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.wait(ctx, "a"); err == nil {
			t.Error("got no error, want that of the context")
		}
	})
}

func TestTheOldestRefusalIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Refusals
		for i := range maxRefused + 1 {
			r.add(strconv.Itoa(i))
			time.Sleep(time.Millisecond)
		}
		if r.counts.Len() != maxRefused || r.delay("0") != 0 || r.delay("1") == 0 {
			t.Errorf("got %d remembered, the first for %s, the second for %s; want %d without the first", r.counts.Len(), r.delay("0"), r.delay("1"), maxRefused)
		}
		var none *Refusals
		none.add("a")
		if none.delay("a") != 0 {
			t.Error("a nil Refusals delays, want no delay")
		}
	})
}
