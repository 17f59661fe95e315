package lru

import (
	"cmp"
	"maps"
	"slices"
)

// Shares counts what owners have of a list that is kept elsewhere, in an order that is no Cache's. The zero
// Shares is empty.
type Shares struct{ by map[string]*Share }

// Share is what an owner has of a list.
type Share struct {
	owner string
	has   int
	loses int // how many of them, the oldest
}

// Add counts a value of an owner, which has the Share that Add returns.
func (s *Shares) Add(owner string) *Share {
	w := s.by[owner]
	if w == nil {
		if s.by == nil {
			s.by = map[string]*Share{}
		}
		w = &Share{owner: owner}
		s.by[owner] = w
	}
	w.has++
	return w
}

// Remove counts a value of a Share no more.
func (s *Shares) Remove(w *Share) {
	w.loses = max(0, w.loses-1)
	if w.has--; w.has == 0 {
		delete(s.by, w.owner)
	}
}

// Cut decides which owners lose values, so that n are left: the owners with the most values lose first, until
// they have as many as the others. It returns how many values are to be removed. See [Share.Loses].
func (s *Shares) Cut(n int) (lost int) {
	all := slices.SortedFunc(maps.Values(s.by), func(a, b *Share) int {
		return cmp.Or(cmp.Compare(a.has, b.has), cmp.Compare(a.owner, b.owner))
	})
	for i, w := range all {
		w.loses = max(0, w.has-n/(len(all)-i)) // so those with more get what this one leaves
		n -= w.has - w.loses
		lost += w.loses
	}
	return lost
}

// Loses reports whether the owner loses its oldest value, which is then to be removed.
func (w *Share) Loses() bool { return w.loses > 0 }
