package nats_test

import (
	"context"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// untilCopied waits until three servers have all of each stream.
func untilCopied(ctx context.Context, t *testing.T, j *nats.Journal) {
	t.Helper()
	for whole := false; !whole; {
		whole = true
		list := j.JetStream().ListStreams(ctx)
		for s := range list.Info() {
			copies := 1
			for _, r := range s.Cluster.Replicas {
				if r.Current {
					copies++
				}
			}
			whole = whole && copies == 3
		}
		if err := list.Err(); err != nil && ctx.Err() != nil {
			t.Fatalf("waiting for the copies: got %v", err)
		}
	}
}

// TestTheServerOfAHubThatIsForgottenHasNoVoteAnyMore starts three hubs of which one is lost for good,
// and one in its place. After the lost one is forgotten, the three survive another loss, and what it
// stored can be read.
func TestTheServerOfAHubThatIsForgottenHasNoVoteAnyMore(t *testing.T) {
	tier.Full(t, "it runs four servers")
	at := ""
	hubs := formed(t, func(o *nats.Options) { at = o.Cluster.Listen })
	want := taskRecords("x", 10)
	if err := hubs["c"].Append(t.Context(), want...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if err := hubs["c"].Close(); err != nil {
		t.Fatal(err)
	}
	o := nats.Options{Dir: t.TempDir(), Name: "d", Cluster: &nats.Cluster{Name: "test", Listen: addresses(t, 1)[0], Peers: []string{at}, Secret: "open sesame"}}
	d, err := nats.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	for range 2 { // the second time it is done already
		if err := hubs["a"].Forget(ctx, "c"); err != nil {
			t.Fatalf("forgetting c: got %v, want no error", err)
		}
	}
	untilCopied(ctx, t, d)
	if _, err := d.TakeOver(ctx, journal.Life{Hub: "c", Epoch: 1}); err != nil {
		t.Errorf("taking c over: got %v, want no error", err)
	}
	if err := hubs["b"].Close(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for name, j := range map[string]*nats.Journal{"a": hubs["a"], "d": d} {
		all.Go(func() {
			for {
				err := j.Append(ctx, taskRecords("after")...)
				if err == nil {
					break // its stream has a leader
				}
				if ctx.Err() != nil {
					t.Errorf("hub %s after b was lost, too: got %v, want its records stored", name, err)
					return
				}
			}
			if events, err := j.ReadOf(ctx, "c", "x", 0, 0); err != nil || len(events) != len(want) {
				t.Errorf("hub %s reads what c stored: got %d events and %v, want %d", name, len(events), err, len(want))
			}
		})
	}
	all.Wait()
}
