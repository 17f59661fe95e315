package coretest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// Keys are the keys of requests in memory, as a store that all hubs of a [Network] run keeps them: a hub
// that does not reach a majority waits.
type Keys struct {
	claims *Claims
	keep   time.Duration
	// After is called after a write that was done, whose acknowledgement is lost if it returns an error; it
	// may be nil.
	After func() error

	mu      sync.Mutex
	last    uint64
	entries map[string][]keyEntry // by name, with the former ones
}

type keyEntry struct {
	text     string
	revision uint64
	at       time.Time
}

// NewKeys returns keys in the store of claims, which keeps each for a time after its last write.
func NewKeys(c *Claims, keep time.Duration) *Keys {
	return &Keys{claims: c, keep: keep, entries: map[string][]keyEntry{}}
}

// Of returns the keys as a hub uses them.
func (k *Keys) Of(of string) remote.KeyStore { return &keysOf{k, &claimsOf{k.claims, of}} }

type keysOf struct {
	*Keys
	store *claimsOf
}

// replicaLag is how long a replica may lack a write that the store has acknowledged.
const replicaLag = 5 * time.Millisecond

// Read implements [remote.KeyStore]. It reads a replica that is as late as it may be.
func (k *keysOf) Read(ctx context.Context, name string) (text string, revision uint64, err error) {
	if err := k.store.reach(ctx); err != nil {
		return "", 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.entries[name] {
		if age := time.Since(e.at); age >= replicaLag {
			text, revision = e.text, e.revision
			if age >= k.keep {
				text, revision = "", 0
			}
		}
	}
	return text, revision, nil
}

// Write implements [remote.KeyStore].
func (k *keysOf) Write(ctx context.Context, name, text string, revision uint64) (next uint64, err error) {
	if err := k.store.reach(ctx); err != nil {
		return 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var now uint64
	all := k.entries[name]
	if n := len(all); n > 0 && time.Since(all[n-1].at) < k.keep {
		now = all[n-1].revision
	}
	if now != revision {
		return 0, nil
	}
	k.last++
	k.entries[name] = append(all, keyEntry{text, k.last, time.Now()})
	if k.After != nil {
		if err := k.After(); err != nil {
			return 0, err
		}
	}
	return k.last, nil
}

// KeyStore holds a [remote.KeyStore] as several hubs use it against its contract.
func KeyStore(t testing.TB, stores ...remote.KeyStore) {
	t.Helper()
	ctx := t.Context()
	write := func(what string, s remote.KeyStore, text string, revision uint64, done bool) (next uint64) {
		t.Helper()
		next, err := s.Write(ctx, "k", text, revision)
		if err != nil || (next != 0) != done {
			t.Fatalf("%s: got revision %d, %v; want it written: %t", what, next, err, done)
		}
		return next
	}
	firsts := make(chan uint64, len(stores))
	for _, s := range stores {
		go func() {
			next, err := s.Write(ctx, "k", "first", 0)
			if err != nil {
				t.Error(err)
			}
			firsts <- next
		}()
	}
	var first uint64
	for range stores {
		if next := <-firsts; next != 0 && first != 0 {
			t.Fatal("got two first writes done, want one")
		} else {
			first = max(first, next)
		}
	}
	one, other := stores[0], stores[len(stores)-1]
	second := write("the next one", other, "second", first, true)
	write("one on the revision before", one, "late", first, false)
	write("one on none", one, "late", 0, false)
	for {
		text, revision, err := one.Read(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		if revision == second && text == "second" {
			break
		}
		if revision > first || revision == first && text != "first" || revision == 0 && text != "" {
			t.Fatalf("got %q with the revision %d, want what was written with it", text, revision)
		}
		if err := timer.Sleep(ctx, time.Millisecond); err != nil { // a replica has it later
			t.Fatal(err)
		}
	}
	write("the last one", one, "third", second, true)
	if text, revision, err := one.Read(ctx, "other"); text != "" || revision != 0 || err != nil {
		t.Errorf("another key: got %q, revision %d, %v; want nothing", text, revision, err)
	}
}
