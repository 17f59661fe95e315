package thread

// window is what is left of a list that grows at its end and is dropped at its start.
// Dropping moves nothing, and growing uses the room of what was dropped, once that is a
// good part of all: a long list costs little with each item, and no memory anew.
type window[T any] struct {
	items []T
	first int // of those that are left
}

// left are those that were not dropped, until the next call of add.
func (w *window[T]) left() []T { return w.items[w.first:] }

func (w *window[T]) add(v T) {
	if len(w.items) == cap(w.items) && w.first > len(w.items)/4 {
		n := copy(w.items, w.left())
		clear(w.items[n:])
		w.items, w.first = w.items[:n], 0
	}
	w.items = append(w.items, v)
}

// drop takes the first away and returns it; there is one.
func (w *window[T]) drop() T {
	var zero T
	v := w.items[w.first]
	w.items[w.first] = zero
	w.first++
	return v
}
