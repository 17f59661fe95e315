package lru

import (
	"cmp"
	"container/heap"
)

// owners are those who have values in a Cache. Those who have the most values, and the most bytes, are known.
type owners[K comparable, V any] struct {
	by    map[string]*owner[K, V]
	made  uint64 // owners so far
	most  ranking[K, V]
	bytes ranking[K, V]
}

// owner has values, in a ring of its own.
type owner[K comparable, V any] struct {
	name   string
	number uint64
	ring   owned[K, V] // ring.next is the oldest, ring.prev the newest
	has    [2]int      // how many values, and how many bytes
	place  [2]int      // in the rankings
}

// The rankings of owners.
const byValues, byBytes = 0, 1

// owned is the place of a value among those of its owner.
type owned[K comparable, V any] struct {
	prev, next *owned[K, V]
	owner      *owner[K, V]
	item       *item[K, V]
	bytes      int
}

func newOwners[K comparable, V any]() owners[K, V] {
	return owners[K, V]{by: map[string]*owner[K, V]{}, most: ranking[K, V]{of: byValues}, bytes: ranking[K, V]{of: byBytes}}
}

// enter adds a value as the newest of an owner, which it returns.
func (o *owners[K, V]) enter(it *item[K, V], name string) *owner[K, V] {
	w := o.by[name]
	if w == nil {
		o.made++
		w = &owner[K, V]{name: name, number: o.made}
		w.ring.prev, w.ring.next = &w.ring, &w.ring
		o.by[name] = w
		heap.Push(&o.most, w)
		heap.Push(&o.bytes, w)
	}
	e := &owned[K, V]{prev: w.ring.prev, next: &w.ring, owner: w, item: it, bytes: it.size}
	e.prev.next, e.next.prev = e, e
	it.owned = e
	o.count(w, 1, e.bytes)
	return w
}

// leave removes a value from those of its owner, if it has one.
func (o *owners[K, V]) leave(it *item[K, V]) {
	e := it.owned
	if e == nil {
		return
	}
	it.owned = nil
	e.prev.next, e.next.prev = e.next, e.prev
	w := e.owner
	if o.count(w, -1, -e.bytes); w.has[byValues] == 0 {
		delete(o.by, w.name)
		heap.Remove(&o.most, w.place[byValues])
		heap.Remove(&o.bytes, w.place[byBytes])
	}
}

// count adds to what an owner has.
func (o *owners[K, V]) count(w *owner[K, V], values, bytes int) {
	w.has[byValues] += values
	heap.Fix(&o.most, w.place[byValues])
	if bytes != 0 {
		w.has[byBytes] += bytes
		heap.Fix(&o.bytes, w.place[byBytes])
	}
}

// oldest returns the oldest value of the owner.
func (w *owner[K, V]) oldest() *item[K, V] { return w.ring.next.item }

// ranking is a heap of owners: the one that has the most is first, of several the one that came first.
type ranking[K comparable, V any] struct {
	of  int
	all []*owner[K, V]
}

// first returns the first owner. There is one.
func (r *ranking[K, V]) first() *owner[K, V] { return r.all[0] }

func (r *ranking[K, V]) Len() int { return len(r.all) }

func (r *ranking[K, V]) Less(i, j int) bool {
	a, b := r.all[i], r.all[j]
	return cmp.Or(cmp.Compare(b.has[r.of], a.has[r.of]), cmp.Compare(a.number, b.number)) < 0
}

func (r *ranking[K, V]) Swap(i, j int) {
	r.all[i], r.all[j] = r.all[j], r.all[i]
	r.all[i].place[r.of], r.all[j].place[r.of] = i, j
}

func (r *ranking[K, V]) Push(x any) {
	w := x.(*owner[K, V])
	w.place[r.of] = len(r.all)
	r.all = append(r.all, w)
}

func (r *ranking[K, V]) Pop() any {
	last := len(r.all) - 1
	w := r.all[last]
	r.all[last] = nil
	r.all = r.all[:last]
	return w
}
