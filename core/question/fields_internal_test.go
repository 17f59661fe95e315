package question

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func formOf(t *testing.T, properties, required string) []field {
	t.Helper()
	form, err := readForm(strictjson.ParseValid([]byte(`{"type":"object","properties":{` + properties + `},"required":[` + required + `]}`)))
	if err != nil {
		t.Fatalf("%s: got %v, want a form", properties, err)
	}
	return form
}

func TestWhatAPersonWritesIsCheckedAndEncoded(t *testing.T) {
	for _, c := range []struct{ property, text, want, why string }{
		{`{"type":"string"}`, " two words ", `"two words"`, ""},
		{`{"type":"string","maxLength":3}`, "öööö", "", "at most 3 characters, got 4"},
		{`{"type":"string","minLength":2,"maxLength":3}`, "x", "", "2 to 3"},
		{`{"type":"string","format":"email"}`, "ada@example.com", `"ada@example.com"`, ""},
		{`{"type":"string","format":"email"}`, "ada", "", "format email"},
		{`{"type":"string","format":"uri"}`, "https://example.com/a<b>", `"https://example.com/a<b>"`, ""},
		{`{"type":"string","format":"uri"}`, "example", "", "format uri"},
		{`{"type":"string","format":"date"}`, "2026-11-22", `"2026-11-22"`, ""},
		{`{"type":"string","format":"date"}`, "22.11.", "", "format date"},
		{`{"type":"string","format":"date-time"}`, "2026-11-22T10:00:00Z", `"2026-11-22T10:00:00Z"`, ""},
		{`{"type":"string","pattern":"^a+$"}`, "b", "", "matches"},
		{`{"type":"string","pattern":"(?=a)"}`, "b", `"b"`, ""}, // not known to Go
		{`{"type":"integer","minimum":1,"maximum":5}`, "5", `5`, ""},
		{`{"type":"integer"}`, "5.5", "", "whole number"},
		{`{"type":"integer"}`, "five", "", "number"},
		{`{"type":"number","minimum":0}`, "-1", "", "at least 0"},
		{`{"type":"number"}`, "1e400", "", "number"},
		{`{"type":"number"}`, "0x10", "", "number"},
		{`{"type":"number"}`, "1e3", `1e3`, ""},
		{`{"type":"boolean"}`, "YES", `true`, ""},
		{`{"type":"boolean"}`, "off", `false`, ""},
		{`{"type":"boolean"}`, "maybe", "", "yes or no"},
		{`{"type":"string","enum":["a","b"]}`, "B", `"b"`, ""},
		{`{"type":"string","enum":["a","b"]}`, "c", "", "none of a, b"},
		{`{"type":"string","enum":["pet-1","pet-2"],"enumNames":["Cats","Dogs"]}`, "dogs", `"pet-2"`, ""},
		{`{"type":"string","oneOf":[{"const":"h1","title":"Superman"},{"const":"h2"}]}`, "Superman", `"h1"`, ""},
		{`{"type":"array","items":{"type":"string","enum":["a","b","c"]},"maxItems":2}`, "a, c,a", `["a","c"]`, ""},
		{`{"type":"array","items":{"anyOf":[{"const":"f1","title":"Tuna"}]},"minItems":1}`, "", "", "at least 1"},
		{`{"type":"array","items":{"enum":["a","b","c"]},"maxItems":2}`, "a,b,c", "", "at most 2"},
	} {
		got, err := formOf(t, `"f":`+c.property, "")[0].parse(c.text)
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s, %q: got %s and %v, want it refused: %s", c.property, c.text, got, err, c.why)
			}
		} else if err != nil || string(got) != c.want {
			t.Errorf("%s, %q: got %s and %v, want %s", c.property, c.text, got, err, c.want)
		}
	}
}

func TestAFormOfSeveralFieldsIsAnsweredInLinesOrAsJSON(t *testing.T) {
	form := formOf(t, `"name":{"type":"string","title":"Full name"},"n":{"type":"integer"},"tags":{"type":"array","items":{"enum":["x","y"]}},"ok":{"type":"boolean"}`, `"name"`)
	for text, want := range map[string]string{
		"name: Ada Lovelace\nN: 5\n\ntags: x, y\nok: yes": `{"n":5,"name":"Ada Lovelace","ok":true,"tags":["x","y"]}`,
		"full name: a: b": `{"name":"a: b"}`,
		`{"name":"Ada","n":5,"tags":["y"],"ok":false}`: `{"n":5,"name":"Ada","ok":false,"tags":["y"]}`,
		"name: Ada\nn:":               `{"name":"Ada"}`,
		"n: 5":                        "! Full name is missing",
		"Ada":                         "! names no field",
		"name: Ada\nn: five":          "! n: want a number",
		`{"name":"Ada","age":5}`:      "! age is no field",
		`{"name":"Ada","name":"Eve"}`: "! duplicate",
	} {
		got, err := parseForm(form, text)
		if why, wrong := strings.CutPrefix(want, "! "); wrong {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%q: got %s and %v, want it refused: %s", text, got, err, why)
			}
		} else if err != nil || string(got) != want {
			t.Errorf("%q: got %s and %v, want %s", text, got, err, want)
		}
	}
}
