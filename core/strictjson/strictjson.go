package strictjson

import (
	"encoding/json"
	"reflect"
	"slices"
	"sync"
)

// Limits bounds one JSON text from outside.
type Limits struct {
	// Bytes is the longest text in bytes; zero or less means 16 MiB.
	Bytes int
	// Depth is how deep arrays and objects may be nested in one another, a
	// single array or object being 1; zero or less means 64, and no setting
	// allows more than 10,000.
	Depth int
}

const (
	defaultBytes = 16 << 20
	defaultDepth = 64
	maxBytes     = 1 << 30 // an index counts bytes in 32 bits
	maxDepth     = 10_000  // where encoding/json itself stops
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

// Check reports whether data is exactly one well-formed JSON value (RFC 8259) in valid
// UTF-8, within limits, in which no object has two keys that are equal once unescaped
// and no key contains a NUL. It keeps nothing of data. The error is always an [*Error].
//
// A \u escape that is half of a surrogate pair passes, as it does in every
// common reader; Go makes U+FFFD of it.
func Check(data []byte, limits Limits) error {
	x, err := read(data, limits)
	x.free()
	return orNil(err)
}

// Parse checks data as [Check] does and returns the value that it is, for reading
// its inside. The Value shares the memory of data, which must not change.
func Parse(data []byte, limits Limits) (Value, error) {
	x, err := read(data, limits)
	defer x.free()
	if err != nil {
		return Value{}, err
	}
	return Value{&index{data, slices.Clone(x.nodes)}, 0}, nil
}

// ParseValid returns the value of a text that the program itself holds, for changing it or
// looking into it again. What encoding/json takes for valid will do, duplicate keys and
// all; of any other text there is no value.
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

// Decode checks data as [Check] does, whose error comes before any other, and decodes
// it into v as [Value.Decode] does.
func Decode(data []byte, limits Limits, v any) error { return decode(data, limits, v, false) }

// DecodeKnown does what [Decode] does and refuses unknown keys too, naming the nearest
// known one. It is for texts that people write: requests to the hub's own interface,
// and configuration.
func DecodeKnown(data []byte, limits Limits, v any) error { return decode(data, limits, v, true) }

func decode(data []byte, limits Limits, v any, known bool) error {
	into := reflect.ValueOf(v)
	if into.Kind() != reflect.Pointer || into.IsNil() {
		return &json.InvalidUnmarshalError{Type: reflect.TypeOf(v)}
	}
	if planOf(into.Type().Elem()).holdsValues { // which live longer than this call
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

// spare holds indexes that nobody uses.
var spare = sync.Pool{New: func() any { return &index{nodes: make([]node, 0, someNodes)} }}

// someNodes is how many nodes most texts fit into.
const someNodes = 64

// mostSpare is how many nodes an index may have that is kept for the next text.
const mostSpare = 1 << 14

// read checks a text and returns its index, which is good until it is freed.
func read(data []byte, limits Limits) (*index, *Error) {
	x, _ := spare.Get().(*index)
	x.text, x.nodes = data, x.nodes[:0]
	s := scanner{index: x}
	err := s.run(limits.filled())
	visit(s.pos)
	return x, err
}

// free gives an index back that nothing refers to any more.
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
