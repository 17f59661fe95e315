package usage

import "container/list"

// recent holds a bounded number of values by key: those that were used last.
type recent[V any] struct {
	limit int
	byKey map[string]*list.Element
	order *list.List // of *held[V], the latest used first
}

type held[V any] struct {
	key   string
	value V
}

func newRecent[V any](limit int) *recent[V] {
	return &recent[V]{limit: limit, byKey: map[string]*list.Element{}, order: list.New()}
}

// at returns the value of a key, a zero one where there was none, and the value
// that had to go for it, if any.
func (r *recent[V]) at(key string) (value, gone *V) {
	if e := r.byKey[key]; e != nil {
		r.order.MoveToFront(e)
		return &e.Value.(*held[V]).value, nil
	}
	if len(r.byKey) >= r.limit {
		oldest := r.order.Remove(r.order.Back()).(*held[V])
		delete(r.byKey, oldest.key)
		gone = &oldest.value
	}
	h := &held[V]{key: key}
	r.byKey[key] = r.order.PushFront(h)
	return &h.value, gone
}

// get returns the value of a key, nil where there is none.
func (r *recent[V]) get(key string) *V {
	if e := r.byKey[key]; e != nil {
		return &e.Value.(*held[V]).value
	}
	return nil
}
