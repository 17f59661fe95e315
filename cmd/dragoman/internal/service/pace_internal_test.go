package service

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestRefusalsOfOneAddressWaitAndThoseOfAnotherDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		took := func(from string) time.Duration {
			began := time.Now()
			p.wait(t.Context(), netip.MustParseAddr(from))
			return time.Since(began)
		}
		for i := range refusalsAtOnce {
			if got := took("192.0.2.1"); got != 0 {
				t.Fatalf("refusal %d: got it after %v, want it at once", i, got)
			}
		}
		if got, want := took("192.0.2.1"), time.Second/refusalRate; got != want {
			t.Errorf("one more: got it after %v, want %v", got, want)
		}
		if got := took("::ffff:192.0.2.1"); got == 0 {
			t.Errorf("the same address in IPv6: got it at once, want it to wait")
		}
		if got := took("192.0.2.2"); got != 0 {
			t.Errorf("another address: got it after %v, want it at once", got)
		}
		for range refusalsAtOnce {
			took("2001:db8::1")
		}
		if got := took("2001:db8::2"); got == 0 {
			t.Errorf("another address of the same IPv6 network: got it at once, want it to wait")
		}
		time.Sleep(2 * time.Second)
		if got := took("192.0.2.1"); got != 0 {
			t.Errorf("2 s later: got it after %v, want it at once", got)
		}
	})
}

func TestRefusalsOfManyAddressesWaitToo(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		p := newPace()
		from := netip.MustParseAddr("10.0.0.1")
		for i := range ofAll * refusalsAtOnce {
			if got := p.delay(from); got != 0 {
				t.Fatalf("address %d: got a delay of %v, want none", i, got)
			}
			from = from.Next()
		}
		if got := p.delay(from); got == 0 {
			t.Error("one more address: got no delay, want one")
		}
	})
}

func TestManyRefusalsWaitNoLongerThanTheLongestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		from := netip.MustParseAddr("192.0.2.1")
		for range 10_000 {
			if got := p.delay(from); got > longestDelay {
				t.Fatalf("got a delay of %v, want at most %v", got, longestDelay)
			}
		}
		time.Sleep(longestDelay + time.Second)
		if got := p.delay(from); got != 0 {
			t.Errorf("after a pause: got a delay of %v, want none", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 * refusalsAtOnce {
			began := time.Now()
			if p.wait(ctx, from); time.Since(began) != 0 {
				t.Fatal("got a wait for a caller that is gone, want none")
			}
		}
	})
}
