package dedup

import (
	"time"

	"github.com/dragoman-hub/dragoman/core/lru"
)

// Verdict is what is known of a key.
type Verdict uint8

// The verdicts.
const (
	_        Verdict = iota
	Fresh            // nothing
	Pending          // a request with the same content has begun
	Settled          // a request with the same content has an outcome
	Conflict         // a request with other content has the key
)

// Options bound [Keys]. A bound that is zero does not apply.
type Options struct {
	// Each is the maximum number of settled keys of an owner: beyond it the oldest are
	// forgotten.
	Each int
	// All is the maximum number of settled keys: beyond it the oldest of the owner with the
	// most keys is forgotten, so that an owner with many requests does not evict the keys of
	// others.
	All int
	// Age is how long a settled key is known.
	Age time.Duration
}

// Keys has the keys of requests by owner, which tell a repeated request from a new one. K is the type of keys, P of
// fingerprints, which are equal only for equal contents, and V of what is kept with a key. No bound drops pending
// keys. Keys start no goroutine and are not safe for concurrent use.
type Keys[K, P comparable, V any] struct {
	pending map[ownedKey[K]]request[P, V]
	settled *lru.Cache[ownedKey[K], request[P, V]]
}

// ownedKey is the key of an owner.
type ownedKey[K comparable] struct {
	owner string
	key   K
}

type request[P comparable, V any] struct {
	fingerprint P
	value       V
}

// New returns Keys that know nothing.
func New[K, P comparable, V any](o Options) *Keys[K, P, V] {
	return &Keys[K, P, V]{map[ownedKey[K]]request[P, V]{}, lru.New(lru.Options[ownedKey[K], request[P, V]]{
		Each: o.Each, Count: o.All, Age: o.Age, Owner: func(k ownedKey[K], _ request[P, V]) string { return k.owner },
	})}
}

// Find returns what is known of a key and what is kept with it.
func (m *Keys[K, P, V]) Find(owner string, key K, fingerprint P) (before V, verdict Verdict) {
	verdict = Pending
	r, known := m.pending[ownedKey[K]{owner, key}]
	if !known {
		verdict = Settled
		r, known = m.settled.Get(ownedKey[K]{owner, key})
	}
	switch {
	case !known:
		verdict = Fresh
	case r.fingerprint != fingerprint:
		verdict = Conflict
	}
	return r.value, verdict
}

// Begin is Find, and makes a Fresh key pending with value.
func (m *Keys[K, P, V]) Begin(owner string, key K, fingerprint P, value V) (before V, verdict Verdict) {
	before, verdict = m.Find(owner, key, fingerprint)
	if verdict == Fresh {
		m.pending[ownedKey[K]{owner, key}] = request[P, V]{fingerprint, value}
	}
	return before, verdict
}

// Settle keeps value as the outcome of a pending key.
func (m *Keys[K, P, V]) Settle(owner string, key K, value V) {
	k := ownedKey[K]{owner, key}
	r, pending := m.pending[k]
	if !pending {
		return
	}
	delete(m.pending, k)
	r.value = value
	m.settled.Put(k, r)
}

// Forget removes a pending or settled key.
func (m *Keys[K, P, V]) Forget(owner string, key K) {
	delete(m.pending, ownedKey[K]{owner, key})
	m.settled.Remove(ownedKey[K]{owner, key})
}

// Len returns how many keys are settled, including those that are too old and not dropped
// yet.
func (m *Keys[K, P, V]) Len() int { return m.settled.Len() }
