package lru

import (
	"iter"
	"time"
)

// Options bound a Cache. A bound that is zero does not apply.
type Options[K comparable, V any] struct {
	// Count is the maximum number of values.
	Count int
	// Bytes is the maximum size of all values together, by Size, which is called by Put.
	Bytes int
	Size  func(K, V) int
	// Age is how long a value is kept after Put.
	Age time.Duration
	// Owner returns whose a value is. With it, Count drops the oldest value of the owner that has the most
	// values, and Bytes that of the owner with the most bytes: so one with many does not evict those of others.
	// It is called by Put, and that may drop the value that was put.
	Owner func(K, V) string
	// Each is the maximum number of values of an owner.
	Each int
	// Evicted is called with each value that a bound drops, during the call that drops it.
	// It must not use the Cache.
	Evicted func(K, V)
}

// Cache keeps values by key. The latest value is kept even if it alone is larger than Bytes.
// All methods take constant time, apart from values that they drop. A Cache starts no
// goroutine and is not safe for concurrent use.
type Cache[K comparable, V any] struct {
	opts   Options[K, V]
	items  map[K]*item[K, V]
	ring   item[K, V] // ring.next is the oldest, ring.prev the newest
	bytes  int
	began  time.Time
	owners owners[K, V]
	spare  *item[K, V] // the item that was dropped last, for reuse
}

type item[K comparable, V any] struct {
	prev, next *item[K, V]
	owned      *owned[K, V] // nil without an owner
	key        K
	value      V
	size       int
	at         time.Duration // since the Cache began
}

// New returns an empty Cache.
func New[K comparable, V any](opts Options[K, V]) *Cache[K, V] {
	c := &Cache[K, V]{opts: opts, items: map[K]*item[K, V]{}, began: time.Now(), owners: newOwners[K, V]()}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	return c
}

// Put adds a value as the newest, replaces another with the key, and drops the oldest beyond
// the bounds.
func (c *Cache[K, V]) Put(key K, value V) {
	now := c.expire()
	it := c.items[key]
	if it != nil {
		it.prev.next, it.next.prev = it.next, it.prev
		c.owners.leave(it)
	} else {
		if it, c.spare = c.spare, nil; it == nil {
			it = new(item[K, V])
		}
		it.key = key
		c.items[key] = it
	}
	it.prev, it.next = c.ring.prev, &c.ring
	it.prev.next, c.ring.prev = it, it
	it.value, it.at = value, now
	if c.opts.Size != nil {
		c.bytes -= it.size
		it.size = c.opts.Size(key, value)
		c.bytes += it.size
	}
	if c.opts.Owner != nil {
		w := c.owners.enter(it, c.opts.Owner(key, value))
		if c.opts.Each > 0 && w.has[byValues] > c.opts.Each {
			c.evict(w.oldest())
		}
	}
	c.trim(now)
}

// Get returns the value of a key, and whether there is one.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.expire()
	if it := c.items[key]; it != nil {
		return it.value, true
	}
	return value, false
}

// Remove drops the value of a key and returns it, and whether there was one. Evicted is
// not called with it.
func (c *Cache[K, V]) Remove(key K) (value V, ok bool) {
	c.expire()
	if it := c.items[key]; it != nil {
		value = it.value
		c.drop(it)
		return value, true
	}
	return value, false
}

// Expire drops what is older than Age, as Put, Get, Remove and All do first.
func (c *Cache[K, V]) Expire() { c.expire() }

// Len returns how many values there are, including those that have become too old since the
// last call of another method.
func (c *Cache[K, V]) Len() int { return len(c.items) }

// All yields the values, oldest first. The loop may remove the value that it got, but may not
// change anything else.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		c.expire()
		for it := c.ring.next; it != &c.ring; {
			key, value := it.key, it.value
			if it = it.next; !yield(key, value) {
				return
			}
		}
	}
}

// expire drops values that are too old and returns the time; 0 without Age.
func (c *Cache[K, V]) expire() (now time.Duration) {
	if c.opts.Age > 0 {
		now = time.Since(c.began)
		c.trim(now)
	}
	return now
}

// trim drops the oldest values until the bounds hold.
func (c *Cache[K, V]) trim(now time.Duration) {
	for len(c.items) > 0 {
		oldest := c.ring.next
		switch {
		case c.opts.Age > 0 && now-oldest.at >= c.opts.Age:
			c.evict(oldest)
		case c.opts.Count > 0 && len(c.items) > c.opts.Count:
			c.evict(c.oldestOf(&c.owners.most))
		case c.opts.Bytes > 0 && c.bytes > c.opts.Bytes && len(c.items) > 1:
			c.evict(c.oldestOf(&c.owners.bytes))
		default:
			return
		}
	}
}

// oldestOf returns the oldest value of the owner that is first in a ranking; of all where values have no owners.
func (c *Cache[K, V]) oldestOf(r *ranking[K, V]) *item[K, V] {
	if c.opts.Owner != nil {
		return r.first().oldest()
	}
	return c.ring.next
}

func (c *Cache[K, V]) evict(it *item[K, V]) {
	key, value := it.key, it.value
	c.drop(it)
	if c.opts.Evicted != nil {
		c.opts.Evicted(key, value)
	}
}

func (c *Cache[K, V]) drop(it *item[K, V]) {
	delete(c.items, it.key)
	c.owners.leave(it)
	it.prev.next, it.next.prev = it.next, it.prev
	c.bytes -= it.size
	*it = item[K, V]{}
	c.spare = it
}
