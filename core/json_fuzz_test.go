package core_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// jsonFuzzDepth is small so that fuzzing reaches it.
const jsonFuzzDepth = 6

var jsonSeeds = []string{
	jsonFrame,
	`{"a":[1,-0.5e+3,true,false,null,"x\u0041\n"],"b":{"a":{}}}`,
	`{"id":1,"\u0069d":2}`, `{"a\u0000":1}`, `{"\ud800":1,"\udfff":2}`, `[[[[[[[]]]]]]]`, `[1,]`, `{"a":1,}`, `{"a" 1}`, `01`, `-`, `"\x"`, "\"\xff\"",
	"\ufeff{}", `{} []`, `true false`, `trust`, ` `, `"\u12`, `{"a":tru}`, `[1e]`,
	`{"id":"n","tags":["a"],"counts":{"x":1},"at":"2026-01-02T03:04:05Z","bytes":"aGk=","levels":["low"],"pair":{"left":1},"number":1e9,"children":[{}],"grid":[1,2,3],"small":7}`,
	`{"ID":"n"}`, `{"small":300}`, `{"any":1e999}`, `{"pair":{"Left":1}}`,
	jsonKeysOf(20, "k3"), jsonKeysOf(20, "last"),
}

// jsonFits is the rule of CheckJSON by other means: slow, and in two readers that
// share nothing with it.
func jsonFits(data []byte, depth int) bool {
	if !json.Valid(data) || !utf8.Valid(data) {
		return false
	}
	type object struct {
		keys  map[string]bool // nil for an array
		value bool            // a value is due, not a key
	}
	var open []object
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return false
		}
		if key, is := token.(string); is && len(open) > 0 && open[len(open)-1].keys != nil && !open[len(open)-1].value {
			top := &open[len(open)-1]
			if top.keys[key] || strings.Contains(key, "\x00") {
				return false
			}
			top.keys[key], top.value = true, true
			continue
		}
		if len(open) > 0 {
			open[len(open)-1].value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, object{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, object{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			if len(open) > 0 {
				open[len(open)-1].value = false
			}
		}
		if len(open) > depth {
			return false
		}
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		err := core.CheckJSON(data, core.JSONLimits{Depth: jsonFuzzDepth})
		if want := jsonFits(data, jsonFuzzDepth); (err == nil) != want {
			t.Errorf("got %v, want the text accepted: %v", err, want)
		}
		checkJSONError(t, err, len(data))
		if !bytes.Equal(before, data) {
			t.Error("the text was changed")
		}
	})
}

func FuzzJSONMembers(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := core.JSONLimits{Depth: jsonFuzzDepth}
		got, err := core.JSONMembers(data, limits)
		if form := core.CheckJSON(data, limits); jsonMessage(err) != jsonMessage(form) {
			t.Errorf("got %v, want what CheckJSON says: %v", err, form)
		}
		var want map[string]json.RawMessage
		if err == nil && bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != len(want) {
			t.Errorf("got %d members, want %d", len(got), len(want))
		}
		for _, m := range got {
			if !bytes.Equal(m.Value, want[string(m.Key)]) {
				t.Errorf("got %q of %q, want %q", m.Value, m.Key, want[string(m.Key)])
			}
		}
	})
}

func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := core.JSONLimits{Depth: jsonFuzzDepth}
		var got, strict, want jsonNote
		err := core.DecodeJSON(data, limits, &got)
		strictErr := core.DecodeJSONStrict(data, limits, &strict)
		checkJSONError(t, err, len(data))
		checkJSONError(t, strictErr, len(data))
		if form := core.CheckJSON(data, limits); form != nil && (jsonMessage(err) != form.Error() || jsonMessage(strictErr) != form.Error()) {
			t.Errorf("got %v and %v, want what is wrong with the form: %v", err, strictErr, form)
		}
		if err != nil {
			if strictErr == nil {
				t.Errorf("strict accepts what lenient refuses: %v", err)
			}
			return
		}
		if !jsonFits(data, jsonFuzzDepth) {
			t.Error("got no error for a text that CheckJSON must refuse")
		}
		if wantErr := json.Unmarshal(data, &want); wantErr != nil {
			t.Errorf("got no error, encoding/json has %v", wantErr)
		}
		if !reflect.DeepEqual(got, want) || strictErr == nil && !reflect.DeepEqual(strict, want) {
			t.Errorf("got  %+v\nand  %+v\nwant %+v", got, strict, want)
		}
		var free any
		if err := core.DecodeJSON(data, limits, &free); err != nil {
			// A number beyond float64 is nothing that any can hold.
			if json.Unmarshal(data, &free) == nil {
				t.Errorf("into any: got %v, want no error", err)
			}
		}
	})
}

// checkJSONError holds every error to its contract: the type, one short line
// of printable text, an offset within the text.
func checkJSONError(t *testing.T, err error, size int) {
	t.Helper()
	if err == nil {
		return
	}
	var form *core.JSONError
	if !errors.As(err, &form) {
		t.Fatalf("got %T, want a *core.JSONError", err)
	}
	if form.Offset < 0 || form.Offset > size {
		t.Errorf("got offset %d in a text of %d bytes", form.Offset, size)
	}
	text := err.Error()
	if text == "" || len(text) > 1000 || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		t.Errorf("got message %q, want one short line of text", text)
	}
}
