package question

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FuzzForm reads any schema of a form and any answer: what fits is strict JSON.
func FuzzForm(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"enum":["x"]}}},"required":["a"]}`), "a: 1\nb: x")
	f.Add([]byte(`{"properties":{"s":{"type":"string","format":"email","pattern":"("}}}`), `{"s":"a@b"}`)
	f.Fuzz(func(t *testing.T, schema []byte, answer string) {
		v, err := strictjson.Parse(schema, strictjson.Limits{})
		if err != nil {
			return
		}
		form, err := readForm(v)
		if err != nil || len(form) == 0 {
			return
		}
		got, err := parseForm(form, answer)
		if err != nil {
			return
		}
		if err := strictjson.Check(got, strictjson.Limits{}); err != nil {
			t.Fatalf("%s, %q became %s: %v", schema, answer, got, err)
		}
	})
}
