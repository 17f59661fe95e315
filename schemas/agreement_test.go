package schemas

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// agree fails when the check and the library judge a message differently. Both
// must be asked about JSON only, without duplicate keys.
func agree(t interface{ Errorf(string, ...any) }, s *Schema, data []byte) {
	got := s.Validate(data)
	want := validateByLibrary(s.compile().library, data)
	if (got == nil) != (want == nil) {
		t.Errorf("%s: the check says %v, the library %v, of %s", s.file, got, want, data)
	}
	var v *Violation
	if got != nil && (!errors.As(got, &v) || strings.Contains(v.Error(), "\n") || !utf8.ValidString(v.Error()) || len(v.Error()) > 1000) {
		t.Errorf("got %q, want one short line", got)
	}
}

// odd are values to put where they do not belong.
var odd = []string{
	`null`, `true`, `false`, `0`, `-1`, `1`, `1.0`, `1.5`, `2e3`, `-0`, `1e300`, `""`, `"x"`, `"low"`, `"\u006cow"`, `"idle"`, `[]`, `["a"]`, `[1]`, `[{}]`, `{}`,
	`{"id":"x"}`, `{"id":"x","name":"y","state":"running","data":""}`, `{"code":"c"}`, `[null]`,
}

// disturb changes one value somewhere in a message: replaces it, removes it or
// adds another.
func disturb(t *rapid.T, value any) any {
	if rapid.IntRange(0, 3).Draw(t, "here") == 0 {
		return json.RawMessage(rapid.SampledFrom(odd).Draw(t, "odd"))
	}
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		known := []string{"x", "id", "ref", "v", "ts", "priority", "status", "seq", "usage", "toolState", "tool_call", "error", "requestId", "metadata", "config"}
		key := rapid.SampledFrom(append(keys, known...)).Draw(t, "key")
		old, there := v[key]
		switch {
		case !there:
			v[key] = json.RawMessage(rapid.SampledFrom(odd).Draw(t, "odd"))
		case rapid.IntRange(0, 4).Draw(t, "remove") == 0:
			delete(v, key)
		default:
			v[key] = disturb(t, old)
		}
		return v
	case []any:
		if len(v) == 0 {
			return []any{json.RawMessage(rapid.SampledFrom(odd).Draw(t, "odd"))}
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
		v[i] = disturb(t, v[i])
		return v
	}
	return json.RawMessage(rapid.SampledFrom(odd).Draw(t, "odd"))
}

func TestTheCheckAndTheLibraryAgreeOnDisturbedSamples(t *testing.T) {
	all := samples(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(all).Draw(t, "sample")
		var message any
		if err := json.Unmarshal(s.data, &message); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			again, _ := json.Marshal(disturb(t, message))
			message = nil
			if err := json.Unmarshal(again, &message); err != nil {
				t.Fatal(err)
			}
			agree(t, s.schema, again)
		}
	})
}

func FuzzValidate(f *testing.F) {
	var all []*Schema
	for _, s := range everySchema() {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Schema) int { return strings.Compare(a.file, b.file) })
	for _, s := range samples(f) {
		f.Add(slices.Index(all, s.schema), s.data)
	}
	for i, text := range append(odd, `{"type":"task`, `{"a":"\`, `"\u00`, `{"type":"x" "y"}`, `[1,]`, `-`, `01`, `{"type":}`, "\xff") {
		f.Add(i, []byte(text))
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		s := all[(i%len(all)+len(all))%len(all)]
		if strictjson.Check(data, strictjson.Limits{}) != nil {
			_ = s.Validate(data) // no panic is all that is asked
			return
		}
		if _, err := decode(data); err != nil {
			return // a number that the library cannot read
		}
		agree(t, s, data)
	})
}
