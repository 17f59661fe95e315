package strictjson

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
)

// Value is a value within a text that [Parse] has checked. Reading a part of it does not
// read the bytes before that part again. The zero Value is no value, such as that of a
// missing member. As a field of a struct it gets its value unchanged. A Value is safe for
// concurrent use.
type Value struct {
	in *index
	at int // its node
}

func (v Value) node() *node { return &v.in.nodes[v.at] }

// Exists reports whether there is a value.
func (v Value) Exists() bool { return v.in != nil }

// Absent reports whether there is no value, or null.
func (v Value) Absent() bool { return v.Kind() <= Null }

// Kind returns the kind of the value, zero for no value.
func (v Value) Kind() Kind {
	if v.in == nil {
		return 0
	}
	return v.node().kind
}

// Raw returns the text of the value, whose memory it shares; nil for no value.
func (v Value) Raw() json.RawMessage {
	if v.in == nil {
		return nil
	}
	n := v.node()
	return v.in.text[n.from:n.to:n.to]
}

// Short returns the text of the value for a message, truncated if it is long.
func (v Value) Short() string { return string(cut(v.Raw())) }

// Offset returns the offset of the value in the text.
func (v Value) Offset() int { return int(v.node().from) }

// Memory returns how many bytes are held as long as the value is: the whole text and its
// index.
func (v Value) Memory() int {
	if v.in == nil {
		return 0
	}
	return len(v.in.text) + len(v.in.nodes)*nodeBytes
}

// Of returns v if raw is its text, in the same memory, else [ParseValid] of raw. It is for
// callers that have both and may have changed the text.
func (v Value) Of(raw []byte) Value {
	if own := v.Raw(); len(own) == len(raw) && (len(own) == 0 || &own[0] == &raw[0]) {
		return v
	}
	return ParseValid(raw)
}

// Clone returns a copy of the text of the value.
func (v Value) Clone() json.RawMessage { return bytes.Clone(v.Raw()) }

// Text returns the value of a string, and whether the value is a string.
func (v Value) Text() (string, bool) {
	if v.Kind() != String {
		return "", false
	}
	return v.in.string(v.at), true
}

// Number returns a number that a float64 can hold.
func (v Value) Number() (float64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(v.Raw()), 64)
	return n, err == nil
}

// Escaped reports whether the value is a string with escapes.
func (v Value) Escaped() bool { return v.Kind() == String && v.node().marks&escaped != 0 }

// IsIntegerLiteral reports whether the value is a number without a fraction and exponent.
func (v Value) IsIntegerLiteral() bool { return v.Kind() == Number && v.node().marks&fraction == 0 }

// Members yields the members of an object in order, with unescaped keys, which may share the
// memory of the text. Any other value has none.
func (v Value) Members() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for at, end := v.at+1, int(v.node().next); at < end; at = int(v.in.nodes[at].next) {
			if !yield(v.in.key(at), Value{v.in, at}) {
				return
			}
		}
	}
}

// Items yields the items of an array. Any other value has none.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}
		for at, end := v.at+1, int(v.node().next); at < end; at = int(v.in.nodes[at].next) {
			if !yield(Value{v.in, at}) {
				return
			}
		}
	}
}

// Len returns how many members or items an object or array has, 0 for any other value.
func (v Value) Len() int {
	if v.Kind() < Array {
		return 0
	}
	return v.in.count(v.at)
}

// Get returns the value at a path of keys, or no value.
func (v Value) Get(keys ...string) Value {
	for _, key := range keys {
		within := v
		v = Value{}
		for name, value := range within.Members() {
			if string(name) == key {
				v = value
				break
			}
		}
	}
	return v
}

// Decode decodes the value into the variable that into points to, by the rules of
// encoding/json with these exceptions:
//
//   - keys are case-sensitive: one that differs from the JSON name of a field only in case
//     is an error with the right spelling, since two readers could understand it
//     differently; other unknown keys are ignored;
//   - a value of the wrong type is an error that names its path and the wanted type; null
//     is accepted everywhere and leaves the zero value;
//   - a whole number may be written with a fraction of zeros or an exponent, as in
//     5.0 and 1e3, up to 2^53: to most languages it is the same number;
//   - a []byte is only base64 text;
//   - the option "string" of a tag is not read.
//
// Types with an UnmarshalJSON of their own decide themselves, and json.RawMessage gets its
// text unchanged. Errors are [*Error], except for an into that is not a pointer; into is
// then unchanged. Of what is decoded, only a [Value] shares the memory of the text. No value
// decodes as null.
func (v Value) Decode(into any) error { return v.decode(into, false) }

// DecodeKnown is [Value.Decode], and refuses unknown keys with the nearest known one.
func (v Value) DecodeKnown(into any) error { return v.decode(into, true) }

// raw returns the text of the value at a node.
func (x *index) raw(at int) []byte {
	n := &x.nodes[at]
	return x.text[n.from:n.to:n.to]
}

// count returns how many members or items the value at a node has.
func (x *index) count(at int) (count int) {
	end := int(x.nodes[at].next)
	for at++; at < end; at = int(x.nodes[at].next) {
		count++
	}
	return count
}

// string returns the unescaped string at a node.
func (x *index) string(at int) string {
	n := &x.nodes[at]
	raw := x.text[n.from+1 : n.to-1]
	visit(len(raw))
	if n.marks&escaped == 0 {
		return string(raw)
	}
	var few [512]byte
	if len(raw) <= len(few) {
		return string(unescape(few[:0], raw))
	}
	return string(unescape(make([]byte, 0, len(raw)), raw))
}
