package schemas

import (
	"bytes"
	"math"
	"strconv"
)

// walk holds the bytes of a message against a node, from left to right. It
// decodes nothing and, for a message without fault, allocates nothing.
type walk struct {
	data []byte
	pos  int
}

// message checks the whole message.
func (w *walk) message(n *node) *Violation {
	w.space()
	if v := w.value(n); v != nil {
		return v
	}
	if w.space(); w.pos < len(w.data) {
		return w.broken()
	}
	return nil
}

// value checks the value that begins at pos and steps behind it; a nil node
// allows any.
func (w *walk) value(n *node) *Violation {
	if n == nil {
		return w.skip()
	}
	if w.pos == len(w.data) {
		return w.broken()
	}
	is := w.typ()
	switch {
	case is == 0:
		return w.broken()
	case n.types&is != 0 || n.types == 0:
	case is == number && n.types&integer != 0:
		// A fraction or exponent may still make a whole number, as in 3e4.
		start := w.pos
		raw, v := w.scalar()
		if v != nil {
			return v
		}
		if f, ok := float(raw); !ok || f != math.Trunc(f) {
			return n.mismatch(cut(raw))
		}
		w.pos = start
	default:
		return n.mismatch(is.got())
	}
	if is&(object|array) != 0 {
		switch {
		case n.values != nil: // these are strings, numbers and words
			return n.mismatch(is.got())
		case is == object && len(n.members) > 0:
			return w.object(n)
		case is == array && n.items != nil:
			return w.array(n)
		}
		return w.skip()
	}
	raw, v := w.scalar()
	if v != nil {
		return v
	}
	return n.judge(is, raw)
}

// object checks the members of the object that begins at pos.
func (w *walk) object(n *node) *Violation {
	var seen uint64
	w.pos++
	for first := true; ; first = false {
		done, v := w.next(first, '}')
		if v != nil {
			return v
		}
		if done {
			return n.missing(seen)
		}
		key, v := w.key()
		if v != nil {
			return v
		}
		m := n.members[string(key)]
		if m == nil {
			if v := w.skip(); v != nil {
				return v
			}
			continue
		}
		seen |= m.bit
		if v := w.value(m.node); v != nil {
			return v.under(string(key))
		}
	}
}

// array checks the items of the array that begins at pos.
func (w *walk) array(n *node) *Violation {
	w.pos++
	for i := 0; ; i++ {
		done, v := w.next(i == 0, ']')
		if v != nil || done {
			return v
		}
		if v := w.value(n.items); v != nil {
			return v.under("[" + strconv.Itoa(i) + "]")
		}
	}
}

// next moves to the next member or item, or behind the closing bracket.
func (w *walk) next(first bool, closing byte) (done bool, v *Violation) {
	w.space()
	if w.pos == len(w.data) {
		return false, w.broken()
	}
	switch c := w.data[w.pos]; {
	case c == closing:
		w.pos++
		return true, nil
	case first:
		return false, nil
	case c == ',':
		w.pos++
		w.space()
		return false, nil
	}
	return false, w.broken()
}

// key reads a key and the colon behind it.
func (w *walk) key() ([]byte, *Violation) {
	if w.pos == len(w.data) || w.data[w.pos] != '"' {
		return nil, w.broken()
	}
	raw, v := w.scalar()
	if v != nil {
		return nil, v
	}
	w.space()
	if w.pos == len(w.data) || w.data[w.pos] != ':' {
		return nil, w.broken()
	}
	w.pos++
	w.space()
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	return []byte(unquote(raw)), nil
}
