package dedup

import (
	"cmp"
	"container/heap"
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

// Options bound a Memory. A bound that is zero does not apply.
type Options[K comparable, V any] struct {
	// Each is the maximum number of settled keys of an owner: beyond it the oldest are
	// forgotten.
	Each int
	// All is the maximum number of settled keys: beyond it the oldest of the owner with the
	// most keys is forgotten, so that an owner with many requests does not evict the keys of
	// others.
	All int
	// Age is how long a settled key is known.
	Age time.Duration
	// Forgotten is called with each settled key that a bound drops. It must not use the
	// Memory.
	Forgotten func(key K, value V)
}

// Memory has the keys of requests by owner. K is the type of keys, P of fingerprints, which
// are equal only for equal contents, and V of what is kept with a key. No bound drops
// pending keys. A Memory starts no goroutine and is not safe for concurrent use.
type Memory[K, P comparable, V any] struct {
	opts    Options[K, V]
	owners  map[string]*owner[K, P, V]
	ranking ranking[K, P, V]
	made    uint64 // owners so far
	settled int    // keys of all owners
	swept   time.Time
}

// owner is a sender of requests, ranked by its number of settled keys.
type owner[K, P comparable, V any] struct {
	name    string
	number  uint64
	pending map[K]request[P, V]
	settled *lru.Cache[K, request[P, V]]
	count   int // of settled keys, as the ranking has it
	place   int // in the ranking
}

type request[P comparable, V any] struct {
	fingerprint P
	value       V
}

// New returns an empty Memory.
func New[K, P comparable, V any](opts Options[K, V]) *Memory[K, P, V] {
	return &Memory[K, P, V]{opts: opts, owners: map[string]*owner[K, P, V]{}, swept: time.Now()}
}

// Find returns what is known of a key and what is kept with it.
func (m *Memory[K, P, V]) Find(owner string, key K, fingerprint P) (before V, verdict Verdict) {
	o := m.owners[owner]
	if o == nil {
		return before, Fresh
	}
	defer m.update(o)
	return o.find(key, fingerprint)
}

func (o *owner[K, P, V]) find(key K, fingerprint P) (before V, verdict Verdict) {
	verdict = Pending
	r, known := o.pending[key]
	if !known {
		verdict = Settled
		r, known = o.settled.Get(key)
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
func (m *Memory[K, P, V]) Begin(owner string, key K, fingerprint P, value V) (before V, verdict Verdict) {
	m.sweep()
	o := m.owner(owner)
	defer m.update(o)
	before, verdict = o.find(key, fingerprint)
	if verdict == Fresh {
		o.pending[key] = request[P, V]{fingerprint, value}
	}
	return before, verdict
}

// Settle keeps value as the outcome of a pending key.
func (m *Memory[K, P, V]) Settle(owner string, key K, value V) {
	o := m.owners[owner]
	if o == nil {
		return
	}
	r, pending := o.pending[key]
	if !pending {
		return
	}
	delete(o.pending, key)
	r.value = value
	o.settled.Put(key, r)
	m.settled++
	m.update(o)
	if m.opts.All > 0 && m.settled > m.opts.All {
		most := m.ranking[0]
		most.settled.Evict()
		m.update(most)
	}
}

// Forget removes a pending or settled key. Forgotten is not called with it.
func (m *Memory[K, P, V]) Forget(owner string, key K) {
	o := m.owners[owner]
	if o == nil {
		return
	}
	delete(o.pending, key)
	if _, ok := o.settled.Remove(key); ok {
		m.settled--
	}
	m.update(o)
}

// ForgetOwner removes all keys of an owner. Forgotten is not called with them.
func (m *Memory[K, P, V]) ForgetOwner(owner string) {
	if o := m.owners[owner]; o != nil {
		m.settled -= o.settled.Len()
		m.remove(o)
	}
}

// Len returns how many keys are settled, including those that are too old and not dropped
// yet.
func (m *Memory[K, P, V]) Len() int { return m.settled }

// owner returns the owner with a name, which it adds if there is none.
func (m *Memory[K, P, V]) owner(name string) *owner[K, P, V] {
	o := m.owners[name]
	if o == nil {
		m.made++
		o = &owner[K, P, V]{name: name, number: m.made, pending: map[K]request[P, V]{}}
		o.settled = lru.New(lru.Options[K, request[P, V]]{Count: m.opts.Each, Age: m.opts.Age, Evicted: m.evicted})
		m.owners[name] = o
		heap.Push(&m.ranking, o)
	}
	return o
}

func (m *Memory[K, P, V]) evicted(key K, r request[P, V]) {
	m.settled--
	if m.opts.Forgotten != nil {
		m.opts.Forgotten(key, r.value)
	}
}

// update ranks an owner after a change, and removes it if it has no keys.
func (m *Memory[K, P, V]) update(o *owner[K, P, V]) {
	switch n := o.settled.Len(); {
	case n == 0 && len(o.pending) == 0:
		m.remove(o)
	case n != o.count:
		o.count = n
		heap.Fix(&m.ranking, o.place)
	}
}

func (m *Memory[K, P, V]) remove(o *owner[K, P, V]) {
	delete(m.owners, o.name)
	heap.Remove(&m.ranking, o.place)
}

// sweep drops, once in each Age, the old keys of owners that have stopped sending.
func (m *Memory[K, P, V]) sweep() {
	if m.opts.Age <= 0 || time.Since(m.swept) < m.opts.Age {
		return
	}
	m.swept = time.Now()
	for _, o := range m.owners {
		o.settled.Expire()
		m.update(o)
	}
}

// ranking is a heap of owners: the one with the most settled keys is first, of several the
// oldest.
type ranking[K, P comparable, V any] []*owner[K, P, V]

func (r ranking[K, P, V]) Len() int { return len(r) }

func (r ranking[K, P, V]) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(r[j].count, r[i].count), cmp.Compare(r[i].number, r[j].number)) < 0
}

func (r ranking[K, P, V]) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].place, r[j].place = i, j
}

func (r *ranking[K, P, V]) Push(x any) {
	o := x.(*owner[K, P, V])
	o.place = len(*r)
	*r = append(*r, o)
}

func (r *ranking[K, P, V]) Pop() any {
	last := len(*r) - 1
	o := (*r)[last]
	(*r)[last] = nil
	*r = (*r)[:last]
	return o
}
