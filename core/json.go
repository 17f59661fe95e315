package core

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// JSONLimits bounds one JSON text from outside.
type JSONLimits struct {
	// Bytes is the longest text in bytes; zero or less means 16 MiB.
	Bytes int
	// Depth is how deep arrays and objects may be nested in one another, a
	// single array or object being 1; zero or less means 64, and no setting
	// allows more than 10,000.
	Depth int
}

const (
	jsonDefaultBytes = 16 << 20
	jsonDefaultDepth = 64
	// jsonMaxDepth is where encoding/json itself stops.
	jsonMaxDepth = 10_000
)

func (l JSONLimits) filled() JSONLimits {
	if l.Bytes <= 0 {
		l.Bytes = jsonDefaultBytes
	}
	if l.Depth <= 0 {
		l.Depth = jsonDefaultDepth
	}
	l.Depth = min(l.Depth, jsonMaxDepth)
	return l
}

// CheckJSON reports whether data is exactly one well-formed JSON value (RFC
// 8259) in valid UTF-8, within limits, in which no object has two keys that are
// equal once unescaped and no key contains a NUL. It reads data once, keeps
// nothing of it, and allocates only for objects of many keys, for keys with
// escapes and for an error, which is always a [*JSONError].
//
// A \u escape that is half of a surrogate pair passes, as it does in every
// common reader; encoding/json turns it into U+FFFD.
func CheckJSON(data []byte, limits JSONLimits) error {
	s := jsonScan{data: data}
	if err := s.run(nil, limits); err != nil {
		return err
	}
	return nil
}

// JSONMember is one member of an object.
type JSONMember struct {
	Key   []byte // unescaped
	Value json.RawMessage
}

// JSONMembers checks data as [CheckJSON] does and returns the members of the object
// that it is, in their order and no key twice. Values are as they stand in data; they
// share its memory, and so do keys. Of any other value there are no members.
func JSONMembers(data []byte, limits JSONLimits) ([]JSONMember, error) {
	s := jsonScan{data: data, gathers: true}
	if err := s.run(nil, limits); err != nil {
		return nil, err
	}
	return s.members, nil
}

// DecodeJSON checks data as [CheckJSON] does, whose error comes before any other,
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
// into beyond what CheckJSON checks. Errors are [*JSONError], except for a v
// that is not a pointer, which is encoding/json's own. v is left as it was
// unless an UnmarshalJSON or UnmarshalText of its own or a number out of range
// is what stopped the decoding; then its content is unspecified.
//
// It may be called from any number of goroutines, each with its own v.
func DecodeJSON(data []byte, limits JSONLimits, v any) error {
	return jsonDecode(data, limits, v, false)
}

// DecodeJSONStrict does what [DecodeJSON] does and refuses unknown keys too,
// naming the nearest known one. It is for texts that people write: requests to
// the hub's own interface, and configuration.
func DecodeJSONStrict(data []byte, limits JSONLimits, v any) error {
	return jsonDecode(data, limits, v, true)
}

func jsonDecode(data []byte, limits JSONLimits, v any, strict bool) error {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || reflect.ValueOf(v).IsNil() {
		return &json.InvalidUnmarshalError{Type: t}
	}
	p := jsonPlanOf(t.Elem())
	kept := jsonKept(t.Elem())
	s := jsonScan{data: data, strict: strict, gathers: len(kept) > 0 && len(data) >= jsonBulk}
	if err := s.run(p, limits); err != nil {
		// What is no JSON has no types and no keys to be wrong.
		return cmp.Or(CheckJSON(data, limits), error(err))
	}
	err := s.unmarshal(v, kept)
	if err == nil {
		return nil
	}
	data = s.inDigits()
	// What the plan cannot see (a range, a type's own rules) is rare: read again,
	// trying out leaf by leaf, to say where it is.
	s = jsonScan{data: data, strict: strict, probe: true}
	if found := s.run(p, limits); found != nil {
		return found
	}
	return jsonRefused(err)
}

// jsonRefused words an error of encoding/json that no single leaf explains.
func jsonRefused(err error) *JSONError {
	var own *JSONError
	if errors.As(err, &own) {
		return own
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return &JSONError{
			Offset:  int(mismatch.Offset),
			Path:    mismatch.Field,
			Problem: fmt.Sprintf("want %s, got %s", jsonDescribe(mismatch.Type), mismatch.Value),
		}
	}
	var rule *Fault // of a type of ours: its code is said beside it
	if errors.As(err, &rule) {
		return &JSONError{Problem: rule.Message}
	}
	return &JSONError{Problem: string(bytes.TrimPrefix([]byte(err.Error()), []byte("json: ")))}
}
