package service

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestRefusalsOfOneAddressWaitAndThoseOfAnotherDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		took := func(from string) time.Duration {
			began := time.Now()
			p.wait(t.Context(), netip.MustParseAddr(from), func(string) {})
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

func TestAGoodCredentialNeverWaitsBesideRefusedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(hub.Options{})
		defer h.Close(t.Context(), "the test is over")
		a, err := auth.New(t.Context(), auth.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		a.Apply(auth.Settings{Tokens: []auth.Token{{Principal: "alice", Hash: auth.HashOf("good")}}})
		s := &Service{auth: a, hub: h, log: slog.New(slog.DiscardHandler), refusalPace: newPace()}
		guarded := s.authenticate(&httpListener{}, false)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		overHTTP := func(token string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/agents", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			guarded.ServeHTTP(w, r)
			return w.Code
		}
		overGRPC := func(token string) error {
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+token))
			_, err := s.admit(peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}), "m") // as that of httptest
			return err
		}
		const bad = 100 // of each
		var answered atomic.Int32
		var waiting sync.WaitGroup
		for range bad {
			waiting.Go(func() {
				if got := overHTTP("bad"); got != http.StatusUnauthorized {
					t.Errorf("a bad token: got %d, want 401", got)
				}
				answered.Add(1)
			})
			waiting.Go(func() {
				if overGRPC("bad") == nil {
					t.Error("a bad token over gRPC: got it taken, want it refused")
				}
				answered.Add(1)
			})
		}
		synctest.Wait()
		if got := answered.Load(); got != refusalsAtOnce {
			t.Errorf("got %d refusals answered at once, want %d", got, refusalsAtOnce)
		}
		if got, want := h.Counters()["auth.delayed"], int64(2*bad-refusalsAtOnce); got != want {
			t.Errorf("got %d refusals counted as delayed, want %d", got, want)
		}
		began := time.Now()
		if got := overHTTP("good"); got != http.StatusOK {
			t.Errorf("a good token: got %d, want 200", got)
		}
		if err := overGRPC("good"); err != nil {
			t.Errorf("a good token over gRPC: got %v, want it taken", err)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("good tokens: got a wait of %v, want none", waited)
		}
		waiting.Wait()
		if took := time.Since(began); took > longestDelay {
			t.Errorf("the last refusal: got it after %v, want at most %v", took, longestDelay)
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
			if p.wait(ctx, from, func(string) {}); time.Since(began) != 0 {
				t.Fatal("got a wait for a caller that is gone, want none")
			}
		}
	})
}
