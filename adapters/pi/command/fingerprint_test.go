package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// someValue draws a JSON value.
func someValue(t *rapid.T, depth int) any {
	kinds := 5
	if depth == 0 {
		kinds = 3
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "word")
	case 1:
		return rapid.Float64().Draw(t, "number")
	case 2:
		return float64(rapid.IntRange(-1000, 1000).Draw(t, "integer"))
	case 3:
		return rapid.String().Draw(t, "text")
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, someValue(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		object[rapid.StringMatching("[a-zé😀\"]{0,4}").Draw(t, "name")] = someValue(t, depth-1)
	}
	return object
}

// otherwise writes a value in another way: spaced out, its members in some order, its
// texts escaped and its numbers in another notation.
func otherwise(v any, r *rand.Rand) string {
	switch v := v.(type) {
	case string:
		if r.IntN(2) == 0 {
			return string(wire.Encode(v))
		}
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune(v)) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		return `"` + b.String() + `"`
	case float64:
		return strconv.FormatFloat(v, 'e', -1, 64)
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, otherwise(item, r))
		}
		return "[ " + strings.Join(items, " ,\n") + " ]"
	case map[string]any:
		names := slices.Collect(maps.Keys(v))
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var members []string
		for _, name := range names {
			members = append(members, otherwise(name, r)+" : "+otherwise(v[name], r))
		}
		return "{\t" + strings.Join(members, ", ") + " }"
	}
	return string(wire.Encode(v))
}

func printOf(t interface{ Fatal(...any) }, text string) fingerprint {
	c, err := Decode([]byte(text), 1<<20)
	if err != nil {
		t.Fatal(text, err)
	}
	return fingerprintOf(c)
}

func TestAFingerprintIsOfTheMeaningAndNotOfTheWriting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := map[string]any{"type": "prompt", "id": "1", "more": someValue(t, 3)}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		plain := string(wire.Encode(v))
		if got, want := printOf(t, otherwise(v, r)), printOf(t, plain); got != want {
			t.Fatalf("got %s, want %s of %s", got, want, plain)
		}
		other := maps.Clone(v)
		other["id"], other["idempotencyKey"] = "2", "k"
		if got, want := printOf(t, string(wire.Encode(other))), printOf(t, plain); got != want {
			t.Fatalf("another id: got %s, want %s", got, want)
		}
		other["more"] = map[string]any{"": v["more"]}
		if printOf(t, string(wire.Encode(other))) == printOf(t, plain) {
			t.Fatalf("another meaning: got the same fingerprint of %s", plain)
		}
	})
}

func TestAFingerprintIsTheDigestOfCanonicalJSON(t *testing.T) {
	const want = "v2:sha256:329dc9ac25ef68287ca482dd8acc81ea9b9d5286f5ac9937a37afb50860a93ae"
	got := printOf(t, `{"type":"set_session_name","sessionId":"s","name":"\u006fne","id":"1","more":{"b":1.0,"a":[1e2,-0]}}`)
	if same := printOf(t, `{"more":{"a":[100,0],"b":1},"name":"one","sessionId":"s","type":"set_session_name"}`); got != same || got.String() != want {
		t.Errorf("got %s and %s, want %s twice", got, same, want)
	}
}

// FuzzFingerprint holds that what is written canonically is the same command.
func FuzzFingerprint(f *testing.F) {
	for _, text := range []string{
		`{"type":"prompt","message":"\ud83d\ude00 \u2028","images":[{"data":"","x":{"b":1,"a":[null,true]}}]}`, `{"a":1e400,"b":-0.0,"c":1e-7,"d":123456789012345678901}`,
		`{"":"","id":{"a":1},"idempotencyKey":[]}`, `{"a":"\u0000\b\f"}`, `[]`, `{}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		c, err := Decode(frame, 1<<20)
		if err != nil {
			return
		}
		var reversed []string
		for key, v := range c.object.Members() {
			value := appendCanonical(nil, v)
			if !json.Valid(value) {
				t.Fatalf("%s: got %s, want JSON", v.Raw(), value)
			}
			reversed = append([]string{string(wire.AppendString(nil, string(key))) + ":" + string(value)}, reversed...)
		}
		canonical := strictjson.ParseValid([]byte("{" + strings.Join(reversed, ",") + "}"))
		if got, want := fingerprintOf(Command{object: canonical}), fingerprintOf(c); got != want {
			t.Errorf("got %s, want %s of %s", got, want, frame)
		}
	})
}
