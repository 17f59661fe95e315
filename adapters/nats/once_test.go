package nats_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
)

const aWhile = time.Hour

func TestANameIsTakenOnceByAllHubsOfACluster(t *testing.T) {
	s := external(t)
	var hubs []*nats.Once
	for _, hub := range []string{"a", "b"} {
		hubs = append(hubs, opened(t, nats.Options{URL: s.ClientURL(), Name: hub, Cluster: &nats.Cluster{Name: "test"}}).Once("nonces", "", aWhile))
	}
	var firsts [20]atomic.Int64
	var taking sync.WaitGroup
	for i := range firsts {
		for _, hub := range hubs {
			taking.Go(func() {
				first, err := hub.Take(t.Context(), fmt.Sprint("n", i))
				if err != nil {
					t.Error(err)
				}
				if first {
					firsts[i].Add(1)
				}
			})
		}
	}
	taking.Wait()
	for i := range firsts {
		if got := firsts[i].Load(); got != 1 {
			t.Errorf("got name %d taken %d times, want once", i, got)
		}
	}
	other := opened(t, nats.Options{URL: s.ClientURL(), Name: "c", Cluster: &nats.Cluster{Name: "other"}})
	if first, err := other.Once("nonces", "", aWhile).Take(t.Context(), "n0"); err != nil || !first {
		t.Errorf("in another cluster: got %t and %v, want the name free", first, err)
	}
}

func TestANameStaysTakenAfterARestart(t *testing.T) {
	dir := t.TempDir()
	for life, want := range []bool{true, false, false} {
		j, err := nats.Open(t.Context(), nats.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		once := j.Once("nonces", "", aWhile)
		if first, err := once.Take(t.Context(), "n"); err != nil || first != want {
			t.Errorf("life %d: got %t and %v, want %t", life, first, err, want)
		}
		if first, err := once.Take(t.Context(), fmt.Sprint("n of life", life)); err != nil || !first {
			t.Errorf("life %d, another name: got %t and %v, want it free", life, first, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
