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
	// Evicted is called with each value that a bound drops, during the call that drops it.
	// It must not use the Cache.
	Evicted func(K, V)
}

// Cache keeps values by key. The latest value is kept even if it alone is larger than Bytes.
// All methods take constant time, apart from values that they drop. A Cache starts no
// goroutine and is not safe for concurrent use.
type Cache[K comparable, V any] struct {
	opts  Options[K, V]
	items map[K]*item[K, V]
	ring  item[K, V] // ring.next is the oldest, ring.prev the newest
	bytes int
	began time.Time
	spare *item[K, V] // the item that was dropped last, for reuse
}

type item[K comparable, V any] struct {
	prev, next *item[K, V]
	key        K
	value      V
	size       int
	at         time.Duration // since the Cache began
}

// New returns an empty Cache.
func New[K comparable, V any](opts Options[K, V]) *Cache[K, V] {
	c := &Cache[K, V]{opts: opts, items: map[K]*item[K, V]{}, began: time.Now()}
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

// Evict drops the oldest value as a bound does. It does nothing on an empty Cache.
func (c *Cache[K, V]) Evict() {
	if it := c.ring.next; it != &c.ring {
		c.evict(it)
	}
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
		over := c.opts.Count > 0 && len(c.items) > c.opts.Count || c.opts.Bytes > 0 && c.bytes > c.opts.Bytes && len(c.items) > 1
		if !over && (c.opts.Age <= 0 || now-oldest.at < c.opts.Age) {
			return
		}
		c.evict(oldest)
	}
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
	it.prev.next, it.next.prev = it.next, it.prev
	c.bytes -= it.size
	*it = item[K, V]{}
	c.spare = it
}
