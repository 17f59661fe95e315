package fifo

// Queue is a first-in, first-out queue. Push and Pop take constant time on average, and
// the queue reuses its memory while it is in use. The zero Queue is empty. It is not safe
// for concurrent use.
type Queue[T any] struct {
	items []T
	head  int
}

// Len returns how many values the queue holds.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// First returns what Pop will. The queue must not be empty.
func (q *Queue[T]) First() T { return q.items[q.head] }

// Items returns the values in order. They are the queue's own memory: the slice is valid
// until the next Push or Pop.
func (q *Queue[T]) Items() []T { return q.items[q.head:] }

// Push appends a value.
func (q *Queue[T]) Push(v T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		left := copy(q.items, q.items[q.head:])
		clear(q.items[left:])
		q.items, q.head = q.items[:left], 0
	}
	q.items = append(q.items, v)
}

// Pop removes the first value and reports whether there was one. The queue keeps nothing
// of it.
func (q *Queue[T]) Pop() (v T, ok bool) {
	if q.head == len(q.items) {
		return v, false
	}
	var zero T
	v, q.items[q.head] = q.items[q.head], zero
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
		if cap(q.items) > 1024 {
			q.items = nil
		}
	}
	return v, true
}

// DeleteFirst removes the first n values for which drop returns true. It is called once with each of those and
// of the values before them, in order.
func (q *Queue[T]) DeleteFirst(n int, drop func(T) bool) {
	all, kept, seen := q.Items(), 0, 0
	for ; n > 0 && seen < len(all); seen++ {
		if drop(all[seen]) {
			n--
			continue
		}
		all[kept] = all[seen]
		kept++
	}
	copy(all[seen-kept:seen], all[:kept]) // what is not seen stays where it is
	clear(all[:seen-kept])
	q.head += seen - kept
}
