package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// fuzzDepth is small so that fuzzing reaches it.
const fuzzDepth = 6

var seeds = []string{
	frame,
	`{"a":[1,-0.5e+3,true,false,null,"x\u0041\n"],"b":{"a":{}}}`,
	`{"id":1,"\u0069d":2}`, `{"a\u0000":1}`, `{"\ud800":1,"\udfff":2}`, `[[[[[[[]]]]]]]`, `[1,]`, `{"a":1,}`, `{"a" 1}`, `01`, `-`, `"\x"`, "\"\xff\"",
	"\ufeff{}", `{} []`, `true false`, `trust`, ` `, `"\u12`, `{"a":tru}`, `[1e]`,
	`{"id":"n","tags":["a"],"counts":{"x":1},"at":"2026-01-02T03:04:05Z","bytes":"aGk=","levels":["low"],"pair":{"left":1},"number":1e9,"children":[{}],"grid":[1,2,3],"small":7}`,
	`{"ID":"n"}`, `{"small":300}`, `{"any":1e999}`, `{"pair":{"Left":1}}`,
	keysOf(20, "k3"), keysOf(20, "last"),
}

// fits is the rule of Check by other means: slow, and in two readers that
// share nothing with it.
func fits(data []byte, depth int) bool {
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

func FuzzCheck(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		err := strictjson.Check(data, strictjson.Limits{Depth: fuzzDepth})
		if want := fits(data, fuzzDepth); (err == nil) != want {
			t.Errorf("got %v, want the text accepted: %v", err, want)
		}
		checkJSONError(t, err, len(data))
		if !bytes.Equal(before, data) {
			t.Error("the text was changed")
		}
	})
}

func FuzzMembers(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := strictjson.Limits{Depth: fuzzDepth}
		v, err := strictjson.Parse(data, limits)
		if form := strictjson.Check(data, limits); message(err) != message(form) {
			t.Errorf("got %v, want what Check says: %v", err, form)
		}
		var want map[string]json.RawMessage
		if err == nil && bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
		}
		got := 0
		for key, value := range v.Members() {
			if got++; !bytes.Equal(value.Raw(), want[string(key)]) {
				t.Errorf("got %q of %q, want %q", value.Raw(), key, want[string(key)])
			}
		}
		if got != len(want) {
			t.Errorf("got %d members, want %d", got, len(want))
		}
		if err == nil {
			var decoded, plain any
			failed, plainErr := v.Decode(&decoded), json.Unmarshal(data, &plain)
			if (failed == nil) != (plainErr == nil) || failed == nil && !reflect.DeepEqual(decoded, plain) {
				t.Errorf("got %v and %v, want %v and %v", decoded, failed, plain, plainErr)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := strictjson.Limits{Depth: fuzzDepth}
		var got, strict, want note
		err := strictjson.Decode(data, limits, &got)
		strictErr := strictjson.DecodeKnown(data, limits, &strict)
		checkJSONError(t, err, len(data))
		checkJSONError(t, strictErr, len(data))
		if form := strictjson.Check(data, limits); form != nil && (message(err) != form.Error() || message(strictErr) != form.Error()) {
			t.Errorf("got %v and %v, want what is wrong with the form: %v", err, strictErr, form)
		}
		if err != nil {
			if strictErr == nil {
				t.Errorf("strict accepts what lenient refuses: %v", err)
			}
			return
		}
		if !fits(data, fuzzDepth) {
			t.Error("got no error for a text that Check must refuse")
		}
		if wantErr := json.Unmarshal(data, &want); wantErr != nil {
			t.Errorf("got no error, encoding/json has %v", wantErr)
		}
		if !reflect.DeepEqual(got, want) || strictErr == nil && !reflect.DeepEqual(strict, want) {
			t.Errorf("got  %+v\nand  %+v\nwant %+v", got, strict, want)
		}
		var free any
		if err := strictjson.Decode(data, limits, &free); err != nil {
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
	var form *strictjson.Error
	if !errors.As(err, &form) {
		t.Fatalf("got %T, want a *strictjson.Error", err)
	}
	if form.Offset < 0 || form.Offset > size {
		t.Errorf("got offset %d in a text of %d bytes", form.Offset, size)
	}
	text := err.Error()
	if text == "" || len(text) > 1000 || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		t.Errorf("got message %q, want one short line of text", text)
	}
}
