package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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
	// maxDepth is where encoding/json itself stops.
	maxDepth = 10_000
)

func (l Limits) filled() Limits {
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	l.Depth = min(l.Depth, maxDepth)
	return l
}

// Check reports whether data is exactly one well-formed JSON value (RFC
// 8259) in valid UTF-8, within limits, in which no object has two keys that are
// equal once unescaped and no key contains a NUL. It reads data once, keeps
// nothing of it, and allocates only for objects of many keys, for keys with
// escapes and for an error, which is always a [*Error].
//
// A \u escape that is half of a surrogate pair passes, as it does in every
// common reader; encoding/json turns it into U+FFFD.
func Check(data []byte, limits Limits) error {
	s := scanner{data: data}
	if err := s.run(nil, limits); err != nil {
		return err
	}
	return nil
}

// Member is one member of an object.
type Member struct {
	Key   []byte // unescaped
	Value json.RawMessage
}

// Members checks data as [Check] does and returns the members of the object
// that it is, in their order and no key twice. Values are as they stand in data; they
// share its memory, and so do keys. Of any other value there are no members.
func Members(data []byte, limits Limits) ([]Member, error) {
	s := scanner{data: data, gathers: true}
	if err := s.run(nil, limits); err != nil {
		return nil, err
	}
	return s.members, nil
}

// Decode checks data as [Check] does, whose error comes before any other,
// and decodes it into v, a pointer, by the rules of encoding/json with these
// exceptions:
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
// Types with an UnmarshalJSON of their own, and json.RawMessage, are not looked
// into beyond what Check checks. Errors are [*Error], except for a v
// that is not a pointer, which is encoding/json's own. v is left as it was
// unless an UnmarshalJSON or UnmarshalText of its own or a number out of range
// is what stopped the decoding; then its content is unspecified.
//
// It may be called from any number of goroutines, each with its own v.
func Decode(data []byte, limits Limits, v any) error {
	return decode(data, limits, v, false)
}

// DecodeKnown does what [Decode] does and refuses unknown keys too,
// naming the nearest known one. It is for texts that people write: requests to
// the hub's own interface, and configuration.
func DecodeKnown(data []byte, limits Limits, v any) error {
	return decode(data, limits, v, true)
}

func decode(data []byte, limits Limits, v any, strict bool) error {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || reflect.ValueOf(v).IsNil() {
		return &json.InvalidUnmarshalError{Type: t}
	}
	p := planOf(t.Elem())
	kept := keptIn(t.Elem())
	s := scanner{data: data, strict: strict, gathers: len(kept) > 0 && len(data) >= bulkBytes}
	if err := s.run(p, limits); err != nil {
		// What is no JSON has no types and no keys to be wrong.
		return cmp.Or(Check(data, limits), error(err))
	}
	err := s.unmarshal(v, kept)
	if err == nil {
		return nil
	}
	data = s.inDigits()
	// What the plan cannot see (a range, a type's own rules) is rare: read again,
	// trying out leaf by leaf, to say where it is.
	s = scanner{data: data, strict: strict, probe: true}
	if found := s.run(p, limits); found != nil {
		return found
	}
	return refused(err)
}

// refused words an error of encoding/json that no single leaf explains.
func refused(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return &Error{
			Offset:  int(mismatch.Offset),
			Path:    mismatch.Field,
			Problem: fmt.Sprintf("want %s, got %s", describe(mismatch.Type), mismatch.Value),
		}
	}
	var worded interface{ PeerMessage() string }
	if errors.As(err, &worded) {
		return &Error{Problem: worded.PeerMessage()}
	}
	return &Error{Problem: string(bytes.TrimPrefix([]byte(err.Error()), []byte("json: ")))}
}
