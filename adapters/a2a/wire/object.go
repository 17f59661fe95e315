package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// object describes the JSON of a T: the members that it may have, in the order in which they are
// written, and where the others are kept.
type object[T any] struct {
	unknown func(*T) *json.RawMessage
	members []member[T]
}

// member is a member of the JSON of a T. None must be there: that is for the check of what was
// read.
type member[T any] struct {
	name string
	read func(*T, strictjson.Value) error
	// write writes the member, or nothing where it has its default.
	write func(*strictjson.Writer, *T)
}

// read reads an object. A member whose name differs from a known one only in case is an error,
// since two readers could understand it differently.
func (o *object[T]) read(into *T, v strictjson.Value) error {
	if err := wantObject(v); err != nil {
		return err
	}
	var unknown json.RawMessage
	for key, value := range v.Members() {
		m, err := o.find(key)
		if err != nil {
			return err
		}
		if m != nil {
			if err := m.read(into, value); err != nil {
				return under(m.name, err)
			}
			continue
		}
		sep := byte(',')
		if unknown == nil {
			sep = '{'
		}
		unknown = append(strictjson.AppendString(append(unknown, sep), string(key)), ':')
		unknown = append(unknown, value.Raw()...)
	}
	if unknown != nil {
		unknown = append(unknown, '}')
	}
	*o.unknown(into) = unknown
	return nil
}

// find returns the member of a name, nil if there is none.
func (o *object[T]) find(key []byte) (*member[T], error) {
	for i := range o.members {
		if string(key) == o.members[i].name {
			return &o.members[i], nil
		}
	}
	for _, m := range o.members {
		if len(key) == len(m.name) && strings.EqualFold(string(key), m.name) {
			return nil, wrong("unknown key %q: write it as %q", key, m.name)
		}
	}
	return nil, nil
}

// write writes an object, the unknown members last.
func (o *object[T]) write(w *strictjson.Writer, t *T) {
	w.B = append(w.B, '{')
	for i := range o.members {
		o.members[i].write(w, t)
	}
	if inner := bytes.TrimSpace(*o.unknown(t)); len(inner) > 2 && inner[0] == '{' {
		if inner = bytes.TrimSpace(inner[1 : len(inner)-1]); len(inner) > 0 {
			if w.B[len(w.B)-1] != '{' {
				w.B = append(w.B, ',')
			}
			w.B = append(w.B, inner...)
		}
	}
	w.B = append(w.B, '}')
}

// append appends the JSON of t to b.
func (o *object[T]) append(b []byte, t *T) []byte {
	w := strictjson.Writer{B: b}
	o.write(&w, t)
	return w.B
}

// textAt is a string, left out if it is empty.
func textAt[T any, S ~string](name string, at func(*T) *S) member[T] {
	return member[T]{name, func(t *T, v strictjson.Value) error {
		var s string
		err := textIn(v, &s)
		*at(t) = S(s)
		return err
	}, func(w *strictjson.Writer, t *T) { w.Some(name, string(*at(t))) }}
}

// flagAt is true, or left out.
func flagAt[T any](name string, at func(*T) *bool) member[T] {
	return member[T]{name, func(t *T, v strictjson.Value) error { return flagIn(v, at(t)) }, func(w *strictjson.Writer, t *T) { w.Flag(name, *at(t)) }}
}

// objectAt is an object that is not looked into. Null and {}, which some peers write everywhere,
// are as none.
func objectAt[T any](name string, at func(*T) *json.RawMessage) member[T] {
	return member[T]{name, func(t *T, v strictjson.Value) error { return objectIn(v, at(t)) }, func(w *strictjson.Writer, t *T) { w.Raw(name, *at(t)) }}
}

// timeAt is a point in time, left out if it is zero.
func timeAt[T any](name string, at func(*T) *time.Time) member[T] {
	return member[T]{name, func(t *T, v strictjson.Value) error { return timeIn(v, at(t)) }, func(w *strictjson.Writer, t *T) {
		if moment := *at(t); !moment.IsZero() {
			w.Key(name)
			w.B = append(moment.UTC().AppendFormat(append(w.B, '"'), TimeFormat), '"')
		}
	}}
}

// textsAt is a list of strings, left out if it is empty.
func textsAt[T any](name string, at func(*T) *[]string) member[T] {
	return listOf(name, at, itemIn, func(w *strictjson.Writer, s *string) { w.B = strictjson.AppendString(w.B, *s) })
}

// listAt is a list of objects, left out if it is empty.
func listAt[T, E any](name string, at func(*T) *[]E, of *object[E]) member[T] {
	return listOf(name, at, of.read, of.write)
}

func listOf[T, E any](name string, at func(*T) *[]E, read func(*E, strictjson.Value) error, write func(*strictjson.Writer, *E)) member[T] {
	return member[T]{name, func(t *T, v strictjson.Value) error { return listIn(v, at(t), read) }, func(w *strictjson.Writer, t *T) {
		if all := *at(t); len(all) > 0 {
			list(w, name, all, write)
		}
	}}
}

// valueAt is an object that is always written.
func valueAt[T, E any](name string, at func(*T) *E, of *object[E]) member[T] {
	return member[T]{name, func(t *T, v strictjson.Value) error {
		if v.Absent() {
			return nil
		}
		return of.read(at(t), v)
	}, func(w *strictjson.Writer, t *T) {
		w.Key(name)
		of.write(w, at(t))
	}}
}

// oneAt is an object that may be left out: then there is nil.
func oneAt[T, E any](name string, at func(*T) **E, of *object[E]) member[T] {
	return member[T]{name, func(t *T, v strictjson.Value) error {
		if v.Absent() {
			return nil
		}
		e := new(E)
		if err := of.read(e, v); err != nil {
			return err
		}
		*at(t) = e
		return nil
	}, func(w *strictjson.Writer, t *T) {
		if e := *at(t); e != nil {
			w.Key(name)
			of.write(w, e)
		}
	}}
}
