package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FuzzDifferential compares the strict reader with encoding/json. What the strict reader accepts,
// encoding/json accepts, and reads the same: the same members in the same order, the same texts, the
// digits of the numbers. What only encoding/json accepts has one of the stated reasons.
func FuzzDifferential(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := strictjson.Limits{Depth: fuzzDepth, Bytes: 1 << 10}
		v, err := strictjson.Parse(data, limits)
		why := reasons(data, limits)
		if err != nil {
			if json.Valid(data) && !slices.ContainsFunc(why, func(problem string) bool { return strings.Contains(err.Error(), problem) }) {
				t.Errorf("got %v for a text that encoding/json accepts, want one of the reasons %q", err, why)
			}
			return
		}
		if len(why) > 0 {
			t.Errorf("got no error, want the text refused: %q", why)
		}
		want, wantErr := readTokens(data)
		if wantErr != nil {
			t.Fatalf("got no error, encoding/json has %v", wantErr)
		}
		if got := appendTokens(nil, v); !reflect.DeepEqual(got, want) {
			t.Errorf("\ngot  %#v\nwant %#v", got, want)
		}
		if lenient := appendTokens(nil, strictjson.ParseValid(data)); !reflect.DeepEqual(lenient, want) {
			t.Errorf("lenient:\ngot  %#v\nwant %#v", lenient, want)
		}
	})
}

// reasons are why the strict reader refuses a text that encoding/json accepts, found by means of
// their own, in the words of its errors.
func reasons(data []byte, limits strictjson.Limits) (all []string) {
	if len(data) > limits.Bytes {
		all = append(all, "too large")
	}
	if !utf8.Valid(data) {
		all = append(all, "is not UTF-8")
	}
	tokens, err := readTokens(data)
	if err != nil {
		return all
	}
	var open []map[string]bool // the keys of the objects that are open; nil for an array
	for _, token := range tokens {
		switch token {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > limits.Depth {
			all = append(all, "nested more than")
		}
		if key, is := token.(name); is {
			keys := open[len(open)-1]
			if keys[string(key)] {
				all = append(all, "duplicate key")
			}
			if strings.Contains(string(key), "\x00") {
				all = append(all, "NUL in a key")
			}
			keys[string(key)] = true
		}
	}
	return all
}

// name is the key of a member, between the tokens of the values.
type name string

// readTokens reads a text with encoding/json.
func readTokens(data []byte) (all []any, err error) {
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	var read func() error
	read = func() error {
		token, err := in.Token()
		if err != nil {
			return err
		}
		all = append(all, token)
		if token != json.Delim('{') && token != json.Delim('[') {
			return nil
		}
		for in.More() {
			if token == json.Delim('{') {
				key, err := in.Token()
				if err != nil {
					return err
				}
				all = append(all, name(key.(string)))
			}
			if err := read(); err != nil {
				return err
			}
		}
		token, err = in.Token()
		all = append(all, token)
		return err
	}
	if err := read(); err != nil {
		return nil, err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return all, nil
}

// appendTokens appends what readTokens has for the same value.
func appendTokens(to []any, v strictjson.Value) []any {
	switch v.Kind() {
	case strictjson.Object:
		to = append(to, json.Delim('{'))
		for key, value := range v.Members() {
			to = appendTokens(append(to, name(key)), value)
		}
		return append(to, json.Delim('}'))
	case strictjson.Array:
		to = append(to, json.Delim('['))
		for value := range v.Items() {
			to = appendTokens(to, value)
		}
		return append(to, json.Delim(']'))
	case strictjson.String:
		text, _ := v.Text()
		return append(to, text)
	case strictjson.Number:
		return append(to, json.Number(v.Raw()))
	case strictjson.Bool:
		return append(to, string(v.Raw()) == "true")
	}
	return append(to, nil)
}
