package coretest

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/hub"
)

// Keys are the keys of requests in memory, as a store that all hubs of a [Network] run keeps them: a hub
// that does not reach a majority waits.
type Keys struct {
	claims *Claims
	keep   time.Duration

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
func (k *Keys) Of(of string) hub.KeyStore { return &keysOf{k, &claimsOf{k.claims, of}} }

type keysOf struct {
	*Keys
	store *claimsOf
}

// replicaLag is how long a replica may lack a write that the store has acknowledged.
const replicaLag = 5 * time.Millisecond

// Read implements [hub.KeyStore]. It reads a replica that is as late as it may be.
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

// Write implements [hub.KeyStore].
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
	return k.last, nil
}
