package strictjson

import (
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core/edge"
)

// Limits bounds one JSON text from outside.
type Limits struct {
	// Bytes is the maximum size of the text; zero or less means 16 MiB.
	Bytes int
	// Depth is the maximum nesting of arrays and objects, 1 for a single one; zero or less
	// means 64. It is never more than 10,000.
	Depth int
}

const (
	defaultBytes = 16 << 20
	defaultDepth = 64
	maxBytes     = 1 << 30 // the index has offsets of 32 bits
	maxDepth     = 10_000  // as in encoding/json
)

func (l Limits) filled() Limits {
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	return Limits{Bytes: min(l.Bytes, maxBytes), Depth: min(l.Depth, maxDepth)}
}

// Check returns an [*Error] unless data is exactly one well-formed JSON value (RFC 8259) in
// valid UTF-8, within limits, in which no object has two keys that are equal once unescaped
// and no key contains a NUL. It keeps no reference to data.
//
// A \u escape that is half of a surrogate pair is accepted, as by every common reader; Go
// replaces it by U+FFFD.
func Check(data []byte, limits Limits) error {
	x, err := read(data, limits)
	x.free()
	return orNil(err)
}

// Parse checks data as [Check] does and returns its value. The Value shares the memory of
// data, which must not change.
func Parse(data []byte, limits Limits) (Value, error) {
	x, err := read(data, limits)
	defer x.free()
	if err != nil {
		return Value{}, err
	}
	return Value{&index{data, slices.Clone(x.nodes)}, 0}, nil
}

// ParseValid returns the value of a text of the program itself. It accepts what is valid to
// encoding/json, such as duplicate keys; for any other text it returns no value.
func ParseValid(data []byte) Value {
	x, _ := spare.Get().(*index)
	defer x.free()
	x.text, x.nodes = data, x.nodes[:0]
	s := scanner{index: x, lenient: true}
	if s.run(Limits{Bytes: maxBytes, Depth: maxDepth}) != nil {
		return Value{}
	}
	visit(s.pos)
	return Value{&index{data, slices.Clone(x.nodes)}, 0}
}

// Decode checks data as [Check] does, and then decodes it into v as [Value.Decode] does.
func Decode(data []byte, limits Limits, v any) error { return decode(data, limits, v, false) }

// DecodeKnown is [Decode], and refuses unknown keys with the nearest known one. It is for
// texts that people write: configuration, and requests to the hub's own interface.
func DecodeKnown(data []byte, limits Limits, v any) error { return decode(data, limits, v, true) }

func decode(data []byte, limits Limits, v any, known bool) error {
	into := reflect.ValueOf(v)
	if into.Kind() != reflect.Pointer || into.IsNil() {
		return &json.InvalidUnmarshalError{Type: reflect.TypeOf(v)}
	}
	if planOf(into.Type().Elem()).holdsValues { // these keep the index
		parsed, err := Parse(data, limits)
		if err != nil {
			return err
		}
		return parsed.decode(v, known)
	}
	x, err := read(data, limits)
	defer x.free()
	if err != nil {
		return err
	}
	return Value{x, 0}.decode(v, known)
}

// spare has unused indexes.
var spare = sync.Pool{New: func() any { return &index{nodes: make([]node, 0, someNodes)} }}

// someNodes is enough nodes for most texts.
const someNodes = 64

// mostSpare is the largest capacity of an index that is kept for the next text.
const mostSpare = 1 << 14

// read checks a text and returns its index, which is valid until it is freed.
func read(data []byte, limits Limits) (*index, *Error) {
	x, _ := spare.Get().(*index)
	x.text, x.nodes = data, x.nodes[:0]
	s := scanner{index: x}
	err := s.run(limits.filled())
	visit(s.pos)
	if err != nil {
		if name := edge.Encoding(data); name != "" {
			err = &Error{Problem: "the text is " + name, Advice: "send it in UTF-8"}
		}
	}
	return x, err
}

// free returns an unused index to the pool.
func (x *index) free() {
	if x.text = nil; cap(x.nodes) <= mostSpare {
		spare.Put(x)
	}
}

func orNil(err *Error) error {
	if err == nil {
		return nil
	}
	return err
}
