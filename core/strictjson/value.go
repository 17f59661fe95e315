package strictjson

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Value is a value within a text that [Parse] has checked. To look into it costs
// what is looked at and not the bytes between: no byte is checked or searched again.
// The zero Value is no value, as of a member that is not there. As a field of a
// struct it takes what stands there as it is. A Value may be used from any number of
// goroutines.
type Value struct {
	in *index
	at int // its node
}

func (v Value) node() *node { return &v.in.nodes[v.at] }

// Exists reports whether there is a value.
func (v Value) Exists() bool { return v.in != nil }

// Absent reports whether there is no value, or null, which stands for none.
func (v Value) Absent() bool { return v.Kind() <= Null }

// Kind returns the kind of the value, zero for no value.
func (v Value) Kind() Kind {
	if v.in == nil {
		return 0
	}
	return v.node().kind
}

// Raw returns the value as it stands in the text, whose memory it shares; nil for no
// value.
func (v Value) Raw() json.RawMessage {
	if v.in == nil {
		return nil
	}
	n := v.node()
	return v.in.text[n.from:n.to:n.to]
}

// Offset returns the byte of the text at which the value begins.
func (v Value) Offset() int { return int(v.node().from) }

// Memory returns how many bytes are held for as long as the value is: the text that it
// stands in, and what tells where the values of that are.
func (v Value) Memory() int {
	if v.in == nil {
		return 0
	}
	return len(v.in.text) + len(v.in.nodes)*nodeBytes
}

// Of returns the value of a text: v where raw is its text, in the same memory, else what
// [ParseValid] makes of raw. It is for who holds both and may have changed the text.
func (v Value) Of(raw []byte) Value {
	if own := v.Raw(); len(own) == len(raw) && (len(own) == 0 || &own[0] == &raw[0]) {
		return v
	}
	return ParseValid(raw)
}

// Clone returns the value as it stands in the text, in memory of its own.
func (v Value) Clone() json.RawMessage { return bytes.Clone(v.Raw()) }

// Text returns what a string says, and whether the value is a string.
func (v Value) Text() (string, bool) {
	if v.Kind() != String {
		return "", false
	}
	return v.in.string(v.at), true
}

// Escaped reports whether the value is a string with escapes.
func (v Value) Escaped() bool { return v.Kind() == String && v.node().marks&escaped != 0 }

// WrittenWhole reports whether the value is a number without a fraction and exponent.
func (v Value) WrittenWhole() bool { return v.Kind() == Number && v.node().marks&fraction == 0 }

// Members yields the members of an object in their order, the keys unescaped. A key
// may share the memory of the text. Of any other value there are none.
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

// Items yields the items of an array. Of any other value there are none.
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

// Get returns the value that the keys lead to, from object to object, or no value.
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

// Decode decodes the value into the value that into, a pointer, leads to, by the rules of
// encoding/json with these exceptions:
//
//   - a key counts only in its exact case: one that differs from the JSON name
//     of a field in case alone is an error that says how to spell it, since two
//     readers could take it for different things; other unknown keys are ignored;
//   - a value of the wrong type is an error that names the path and what is
//     wanted there; null is taken everywhere and leaves the zero value;
//   - a whole number may be written with a fraction of zeros or an exponent, as in
//     5.0 and 1e3, up to 2^53: to most languages it is the same number;
//   - a []byte is base64 text only.
//
// Types with an UnmarshalJSON of their own, and json.RawMessage, are not looked into.
// Errors are [*Error], except for an into that is no pointer, which is encoding/json's
// own; into is then as it was. Nothing that is decoded shares the memory of the text but
// a [Value]. No value decodes as null.
func (v Value) Decode(into any) error { return v.decode(into, false) }

// DecodeKnown does what [Value.Decode] does and refuses unknown keys too, naming the
// nearest known one.
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

// string returns what the string at a node says.
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
