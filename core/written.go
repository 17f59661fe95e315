package core

import "sync/atomic"

// Written caches one turn as a dialect writes it, so that a turn is encoded once and not
// for every later request. It caches the form of the dialect that was used last. The zero
// Written is empty; it is safe for concurrent use.
type Written struct{ form atomic.Pointer[form] }

type form struct {
	dialect string
	text    []byte
}

// Equal reports true: what is cached adds nothing to the turn.
func (*Written) Equal(*Written) bool { return true }

// WriteTurns appends turns to b as a dialect writes them, with a comma between two.
// It calls encode for those that are not cached in the form of the dialect.
func WriteTurns(b []byte, turns []Turn, dialect string, encode func(Turn) []byte) []byte {
	for i := range turns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, turns[i].written(dialect, encode)...)
	}
	return b
}

// written returns the turn as the dialect writes it.
func (t *Turn) written(dialect string, encode func(Turn) []byte) []byte {
	if t.Written == nil {
		return encode(*t)
	}
	if kept := t.Written.form.Load(); kept != nil && kept.dialect == dialect {
		return kept.text
	}
	text := encode(*t)
	if len(text) <= 2*t.Size() { // more is of control characters, which become six bytes each
		t.Written.form.Store(&form{dialect, text})
	}
	return text
}
