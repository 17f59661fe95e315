package strictjson_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// anyJSON draws a value as encoding/json would decode it.
func anyJSON(t *rapid.T, depth int) any {
	top := 5
	if depth == 0 {
		top = 3
	}
	switch rapid.IntRange(0, top).Draw(t, "class") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Float64().Draw(t, "number")
	case 3:
		return rapid.String().Draw(t, "text")
	case 4:
		list := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range list {
			list[i] = anyJSON(t, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 20).Draw(t, "size") {
			key := strings.ReplaceAll(rapid.String().Draw(t, "key"), "\x00", "")
			object[key] = anyJSON(t, depth-1)
		}
		return object
	}
}

func TestWhatEncodingJSONWritesIsTakenAndReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyJSON(t, 4)
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var spaced bytes.Buffer
		if rapid.Bool().Draw(t, "spaced") && json.Indent(&spaced, data, "\r\n", "\t ") == nil {
			data = spaced.Bytes()
		}
		var got any
		if err := strictjson.DecodeKnown(data, strictjson.Limits{}, &got); err != nil {
			t.Fatalf("got %v, want no error for %s", err, data)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %#v, want %#v", got, want)
		}
	})
}

func TestACutTextIsAlwaysRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, _ := json.Marshal(map[string]any{"value": anyJSON(t, 3)})
		n := rapid.IntRange(0, len(data)-1).Draw(t, "cut")
		if err := strictjson.Check(data[:n], strictjson.Limits{}); err == nil {
			t.Fatalf("got no error for %s", data[:n])
		}
	})
}

func TestAKeySentTwiceIsAlwaysRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z"\\é]{1,12}`), 1, 60, rapid.ID[string]).Draw(t, "keys")
		twice := rapid.SampledFrom(keys).Draw(t, "twice")
		at := rapid.IntRange(0, len(keys)).Draw(t, "at")
		var text strings.Builder
		text.WriteString(`[{"deep":{`)
		for i, key := range append(keys[:at:at], append([]string{twice}, keys[at:]...)...) {
			if i > 0 {
				text.WriteString(",")
			}
			quoted, _ := json.Marshal(key)
			if rapid.Bool().Draw(t, "escaped") {
				quoted = escapeAll(key)
			}
			text.Write(quoted)
			text.WriteString(":0")
		}
		text.WriteString(`}}]`)
		err := strictjson.Check([]byte(text.String()), strictjson.Limits{})
		if !strings.HasPrefix(message(err), "duplicate key") || !strings.Contains(message(err), "(in [0].deep)") {
			t.Fatalf("got %v, want a duplicate key in [0].deep of %s", err, text.String())
		}
	})
}

// escapeAll writes every character of the Basic Multilingual Plane as \u.
func escapeAll(key string) []byte {
	out := []byte{'"'}
	for _, r := range key {
		out = append(out, `\u`...)
		for shift := 12; shift >= 0; shift -= 4 {
			out = append(out, "0123456789abcdef"[r>>shift&15])
		}
	}
	return append(out, '"')
}

func TestAKeyInAnotherCaseIsAlwaysRefusedWithItsSpelling(t *testing.T) {
	names := []string{"id", "kind", "text", "tags", "counts", "ratio", "open", "at", "bytes", "levels", "pair", "raw", "any", "number", "children", "named", "grid", "small", "max_tokens", "words"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		at := rapid.IntRange(0, len(name)-1).Filter(func(i int) bool { return name[i] != '_' }).Draw(t, "letter")
		key := name[:at] + string(unicode.ToUpper(rune(name[at]))) + name[at+1:]
		var v note
		err := strictjson.Decode([]byte(`{"children":[{"`+key+`":null}]}`), strictjson.Limits{}, &v)
		if want := `children[0]: unknown key "` + key + `": did you mean "` + name + `"?`; message(err) != want {
			t.Fatalf("got  %v\nwant %s", err, want)
		}
	})
}

func TestAStructComesBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := note{
			base:   base{ID: rapid.String().Draw(t, "id")},
			Kind:   rapid.String().Draw(t, "kind"),
			Tags:   rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "tags"),
			Counts: rapid.MapOfN(rapid.StringMatching(`[a-zA-Z]{1,5}`), rapid.Int8(), 0, 3).Draw(t, "counts"),
			Ratio:  rapid.Float32().Draw(t, "ratio"),
			Bytes:  rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes"),
			Small:  rapid.Uint8().Draw(t, "small"),
			Raw:    json.RawMessage(`{"ID":1}`),
			Number: "0",
		}
		data, err := json.Marshal(struct {
			note
			Pair *struct{} `json:"pair"`
		}{note: want})
		if err != nil {
			t.Fatal(err)
		}
		var got note
		if err := strictjson.DecodeKnown(data, strictjson.Limits{}, &got); err != nil {
			t.Fatalf("got %v, want no error for %s", err, data)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}
