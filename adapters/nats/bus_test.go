package nats_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

// together opens the journals of hubs of one cluster on an external server.
func together(t *testing.T, s *server.Server, hubs ...string) (all []*nats.Journal) {
	t.Helper()
	for _, hub := range hubs {
		all = append(all, opened(t, nats.Options{URL: s.ClientURL(), Name: hub, Cluster: &nats.Cluster{Name: "all"}}))
	}
	return all
}

// subscribed returns what comes on a subject.
func subscribed(t *testing.T, b *nats.Bus, subject string) <-chan string {
	t.Helper()
	got := make(chan string, 1<<16)
	stop, err := b.Subscribe(subject, func(data []byte, reply func([]byte)) {
		if reply != nil {
			reply(append([]byte("re: "), data...))
		}
		got <- string(data)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return got
}

// next returns the next message, or fails the test.
func next(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case m := <-from:
		return m
	case <-time.After(watchdog):
		t.Fatal("got no message, want the next one")
		return ""
	}
}

func TestTheBusKeepsTheOrderOfASender(t *testing.T) {
	hubs := together(t, external(t), "a", "b", "c")
	var got []<-chan string
	for _, h := range hubs {
		got = append(got, subscribed(t, h.Bus(), "news.x"))
	}
	const many = 5000
	data := []byte("0")
	for i := range many {
		data = strconv.AppendInt(data[:0], int64(i), 10)
		if err := hubs[0].Bus().Publish("news.x", data); err != nil {
			t.Fatal(err)
		}
	}
	copy(data, "?")
	for n, from := range got {
		for i := range many {
			if m := next(t, from); m != strconv.Itoa(i) {
				t.Fatalf("subscriber %d: got %s as message %d", n, m, i)
			}
		}
	}
}

func TestARequestIsAnsweredOrNobodyIsThere(t *testing.T) {
	hubs := together(t, external(t), "a", "b")
	a, b := hubs[0].Bus(), hubs[1].Bus()
	subscribed(t, b, "hub.b.ping")
	if got, err := a.Request(t.Context(), "hub.b.ping", []byte("are you there")); err != nil || string(got) != "re: are you there" {
		t.Errorf("got %q and %v, want the answer", got, err)
	}
	if _, err := a.Request(t.Context(), "hub.c.ping", nil); !errors.Is(err, cluster.ErrNobody) {
		t.Errorf("where nobody is: got %v, want %v", err, cluster.ErrNobody)
	}
	later := make(chan func([]byte), 1)
	stop, err := b.Subscribe("hub.b.slow", func(_ []byte, reply func([]byte)) { later <- reply })
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("it took too long")
	ctx, tooLong := context.WithCancelCause(t.Context())
	go func() { <-later; tooLong(why) }()
	if _, err := a.Request(ctx, "hub.b.slow", nil); !errors.Is(err, why) {
		t.Errorf("without an answer in time: got %v, want %v", err, why)
	}
	go func() { (<-later)([]byte("at last")) }()
	if got, err := a.Request(t.Context(), "hub.b.slow", nil); err != nil || string(got) != "at last" {
		t.Errorf("an answer that comes later: got %q and %v, want it", got, err)
	}
	stop()
	if _, err := a.Request(t.Context(), "hub.b.slow", nil); !errors.Is(err, cluster.ErrNobody) {
		t.Errorf("after it has stopped: got %v, want %v", err, cluster.ErrNobody)
	}
}

func TestClustersOnOneServerDoNotHearEachOther(t *testing.T) {
	s := external(t)
	a := together(t, s, "a")[0].Bus()
	other := opened(t, nats.Options{URL: s.ClientURL(), Name: "b", Cluster: &nats.Cluster{Name: "others"}}).Bus()
	subscribed(t, other, "hubs")
	if _, err := a.Request(t.Context(), "hubs", nil); !errors.Is(err, cluster.ErrNobody) {
		t.Errorf("got %v, want %v", err, cluster.ErrNobody)
	}
}

func TestASlowHandlerDelaysItsOwnSubjectOnly(t *testing.T) {
	hubs := together(t, external(t), "a", "b")
	a, b := hubs[0].Bus(), hubs[1].Bus()
	goOn := make(chan struct{})
	heard := 0
	stop, err := b.Subscribe("bulk", func(_ []byte, reply func([]byte)) {
		<-goOn
		heard++
		if reply != nil {
			reply(strconv.AppendInt(nil, int64(heard-1), 10))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	news := subscribed(t, b, "news")
	const pieces, size = 100, 512 << 10 // more than a subscriber may be behind
	for range pieces {
		if err := a.Publish("bulk", make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Publish("news", []byte("still here")); err != nil {
		t.Fatal(err)
	}
	if m := next(t, news); m != "still here" {
		t.Errorf("got %q, want the news while the other handler waits", m)
	}
	close(goOn)
	var before []byte
	for before == nil { // it is lost too as long as the handler is behind
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		before, _ = a.Request(ctx, "bulk", nil)
		cancel()
	}
	if n, err := strconv.Atoi(string(before)); err != nil || n == 0 || n >= pieces {
		t.Errorf("got %s of %d messages and %v, want those that fit", before, pieces, err)
	}
}

func TestABusReconnectsAndLosesWhatIsPublishedMeanwhile(t *testing.T) {
	dir, at := t.TempDir(), netip.MustParseAddrPort(coretest.Address(t))
	start := func() *server.Server {
		t.Helper()
		s, err := server.NewServer(&server.Options{Host: at.Addr().String(), Port: int(at.Port()), JetStream: true, JetStreamMaxStore: 64 << 30, StoreDir: dir, NoSigs: true, NoLog: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(watchdog) {
			t.Fatal("the server did not start")
		}
		return s
	}
	s := start()
	hubs := together(t, s, "a", "b")
	a, b := hubs[0].Bus(), hubs[1].Bus()
	news := subscribed(t, b, "news")
	s.Shutdown()
	s.WaitForShutdown()
	try := time.NewTicker(10 * time.Millisecond)
	defer try.Stop()
	for a.Publish("news", []byte("meanwhile")) == nil {
		<-try.C
	}
	start()
	again := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		answer, err := a.Request(ctx, "news", []byte("again"))
		if err == nil && string(answer) != "re: again" {
			t.Errorf("got the answer %q, want that to the request", answer)
		}
		return err == nil
	}
	for !again() {
		<-try.C
	}
	for m := next(t, news); m != "again"; m = next(t, news) {
		if m != "meanwhile" {
			t.Errorf("got %q, want what was said once it was back", m)
		}
	}
}

func TestClaimsHaveOneHolder(t *testing.T) {
	claimsHaveOneHolder(t, together(t, external(t), "a", "b", "c"))
}

func claimsHaveOneHolder(t *testing.T, hubs []*nats.Journal) {
	t.Helper()
	never := func(string) bool { return false }
	got := make(chan string, len(hubs))
	for i, h := range hubs {
		go func() {
			holder, err := h.Claims().Claim(t.Context(), "agent.Zoë the 1st", "hub "+strconv.Itoa(i), never)
			if err != nil {
				t.Error(err)
			}
			got <- holder
		}()
	}
	holders := []string{<-got, <-got, <-got}
	if slices.Sort(holders); holders[0] != holders[2] || holders[0] == "" {
		t.Fatalf("got the holders %q, want one", holders)
	}
	first, name := holders[0], "agent.Zoë the 1st"
	n, err := strconv.Atoi(strings.TrimPrefix(first, "hub "))
	if err != nil {
		t.Fatal(err)
	}
	winner, loser := hubs[n].Claims(), hubs[(n+1)%3].Claims()
	claim := func(what string, c *nats.Claims, value string, yields func(string) bool, want string) {
		t.Helper()
		if holder, err := c.Claim(t.Context(), name, value, yields); err != nil || holder != want {
			t.Errorf("%s: got the holder %q and %v, want %q", what, holder, err, want)
		}
	}
	claim("the holder again", winner, first, never, first)
	if err := loser.Release(t.Context(), name, "somebody"); err != nil {
		t.Errorf("releasing what one does not hold: got %v, want no error", err)
	}
	claim("another one", loser, "new", never, first)
	claim("another one, as the holder is gone", loser, "new", func(holder string) bool { return holder == first }, "new")
	if err := winner.Release(t.Context(), name, first); err != nil {
		t.Errorf("releasing what was taken: got %v, want no error", err)
	}
	claim("the former holder", winner, first, never, "new")
	if err := loser.Release(t.Context(), name, "new"); err != nil {
		t.Error(err)
	}
	claim("after the release", winner, first, never, first)
	if err := loser.Release(t.Context(), name, first); err != nil { // as the heir of a hub that is gone
		t.Error(err)
	}
	claim("after its release by another one", loser, "new", never, "new")
	coretest.CheckWatch(t, winner, loser)
}
