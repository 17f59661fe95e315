package schemas_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

func TestAnInputIsHeldAgainstTheSchemaOfItsTool(t *testing.T) {
	for _, c := range []struct{ schema, input, want string }{
		{`{}`, `{"a":1}`, ""},
		{`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`, `{"city":"Bonn"}`, ""},
		{`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`, `{}`, "city: missing"},
		{`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`, `{"city":4}`, "city: want a string, got a number"},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","maxLength":1}}}}`, `{"a":["x","yy"]}`, "a.1: "},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"b":1}`, "'b'"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/definitions/n"}}}`, `{"n":"1"}`, "n: want a whole number"},
		{`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":7}`, "a: "},
		{`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,1]}`, ""},
	} {
		judge, err := schemas.Compile([]byte(c.schema))
		if err != nil {
			t.Fatalf("%s: got %v, want it compiled", c.schema, err)
		}
		got := judge([]byte(c.input))
		if (got == nil) != (c.want == "") || got != nil && !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s against %s: got %v, want %q", c.input, c.schema, got, c.want)
		}
	}
}

func TestWhatIsNoSchemaIsRefusedWithTheReason(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"objekt"}`:                                  "type",
		`{"properties":[]}`:                                  "properties",
		`{"$ref":"https://example.com/schema.json"}`:         "https://example.com/schema.json",
		`{"$ref":"#/nowhere"}`:                               "nowhere",
		`{"$ref":"embedded:///acp/query.json"}`:              "acp/query.json",
		`{"minimum":1e999999999}`:                            "out of range",
		`{"pattern":"("}`:                                    "pattern",
		`[]`:                                                 "",
		`{"$schema":"https://example.com/my/dialect#"}`:      "example.com",
		`{"type":`:                                           "JSON",
		`{"$ref":"file:///etc/passwd"}`:                      "file:///etc/passwd",
		`{"properties":{"a":{"type":["string","nothing"]}}}`: "type",
	} {
		_, err := schemas.Compile([]byte(schema))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %q", schema, err, want)
		}
	}
}

func TestASchemaThatUnfoldsWithoutEndIsLeftToTheTool(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
	for i := range 60 {
		fmt.Fprintf(&bomb, `"%d":{"allOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]},`, i, i+1, i+1)
	}
	bomb.WriteString(`"60":{}}}`)
	for name, schema := range map[string]string{
		"a bomb": bomb.String(),
		"a tree": `{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}`,
		"anchor": `{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}}}`,
	} {
		judge, err := schemas.Compile([]byte(schema))
		if err != nil {
			t.Errorf("%s: got %v, want it taken", name, err)
			continue
		}
		if err := judge([]byte(`{"left":{"left":7}}`)); err != nil {
			t.Errorf("%s: got %v, want an object taken", name, err)
		}
		if err := judge([]byte(`[]`)); err == nil {
			t.Errorf("%s: got no error for an array, want one", name)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"$ref":"#/$defs/x"}]}},"$defs":{"x":{"minimum":1}}}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"$ref":"#"}`), []byte(`{}`))
	f.Add([]byte(`{"$recursiveAnchor":true,"items":{"$recursiveRef":"#"},"$schema":"https://json-schema.org/draft/2019-09/schema"}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, schema, input []byte) {
		if strictjson.Check(schema, strictjson.Limits{}) != nil || strictjson.Check(input, strictjson.Limits{}) != nil || !json.Valid(input) {
			return
		}
		judge, err := schemas.Compile(schema)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line", err)
			}
			return
		}
		_ = judge(input) // no panic is all that is asked
	})
}
