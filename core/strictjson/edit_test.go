package strictjson_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func TestAnObjectIsChangedInPlace(t *testing.T) {
	set := func(fields ...strictjson.Field) func(strictjson.Value) string {
		return func(v strictjson.Value) string { return string(v.Set(fields...)) }
	}
	without := func(keys ...string) func(strictjson.Value) string {
		return func(v strictjson.Value) string {
			text, _ := v.Without(keys...)
			return string(text)
		}
	}
	a, b := strictjson.Field{Key: "a", Value: []byte(`"x"`)}, strictjson.Field{Key: "b", Value: []byte(`[]`)}
	for name, c := range map[string]struct {
		change     func(strictjson.Value) string
		text, want string
	}{
		"a member that is there":       {set(a), `{ "a" : 1 , "c":2 }`, `{ "a" : "x" , "c":2 }`},
		"a member that is not":         {set(a), `{ "c":2 }`, `{ "c":2,"a":"x" }`},
		"both, in the order of fields": {set(b, a), "{\"a\":1\n}", "{\"a\":\"x\",\"b\":[]\n}"},
		"a key with an escape":         {set(a), `{"\u0061":1}`, `{"\u0061":"x"}`},
		"an empty object":              {set(a, b), `{}`, `{"a":"x","b":[]}`},
		"an empty object with space":   {set(a), `{ }`, `{"a":"x" }`},
		"no object":                    {set(a), `[1]`, `[1]`},
		"without the first":            {without("a"), `{ "a":1 , "c":2 }`, `{ "c":2 }`},
		"without the last":             {without("c"), `{ "a":1 , "c":2 }`, `{ "a":1 }`},
		"without one between":          {without("b"), `{"a":1, "b":2,  "c":3}`, `{"a":1,  "c":3}`},
		"without all":                  {without("a", "c"), `{ "a":1 , "c":2 }`, `{  }`},
		"without what is not there":    {without("x"), `{"a":1}`, `{"a":1}`},
		"without, of no object":        {without("a"), `"a"`, `"a"`},
	} {
		if got := c.change(parse(t, c.text)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestAChangedObjectHasWhatItHadAndWhatWasSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-e"é]{1,2}`), 0, 6, rapid.ID[string])
		want := map[string]any{}
		for _, key := range keys.Draw(t, "keys") {
			want[key] = anyJSON(t, 2)
		}
		text, _ := json.MarshalIndent(map[string]any{"in": want}, "", rapid.SampledFrom([]string{"", " "}).Draw(t, "indent"))
		var fields []strictjson.Field
		for _, key := range keys.Draw(t, "set") {
			fields = append(fields, strictjson.Field{Key: key, Value: []byte(`{"new":1}`)})
			want[key] = map[string]any{"new": 1.0}
		}
		whole, err := strictjson.Parse(text, strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		same := func(text []byte) {
			var got map[string]any
			if err := strictjson.Decode(text, strictjson.Limits{}, &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("got %v and %s, want %v", err, text, want)
			}
		}
		changed := whole.Get("in").Set(fields...)
		same(changed)
		v, _ := strictjson.Parse(changed, strictjson.Limits{})
		gone := keys.Draw(t, "gone")
		for _, key := range gone {
			delete(want, key)
		}
		less, left := v.Without(gone...)
		if same(less); left != len(want) {
			t.Fatalf("got %d left, want %d", left, len(want))
		}
	})
}
