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
		{`{"properties":{"a":{"enum":["<",">=","&é"]}}}`, `{"a":"<"}`, ""},
		{`{"properties":{"a":{"enum":["<",">=","&é"]}}}`, `{"a":"\u003e="}`, ""},
		{`{"properties":{"a":{"enum":["<",">=","&é"]}}}`, `{"a":"\u0026\u00e9"}`, ""},
		{`{"properties":{"a":{"enum":["<","\u0001"]}}}`, `{"a":"\u0001"}`, ""},
		{`{"properties":{"a":{"enum":["\u2028"]}}}`, "{\"a\":\"\u2028\"}", ""},
		{`{"properties":{"a":{"enum":["<",">="]}}}`, `{"a":"<="}`, `a: want "<" or ">=", got "<="`},
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

// A pattern of ECMA-262 (JSON Schema 2020-12, core, section 6.4) may have what Go's expressions lack. Whatever fits
// the whole schema must be taken, and what the rest of it refuses is refused.
func TestAPatternThatGoLacksIsLeftToTheTool(t *testing.T) {
	const email = `"pattern":"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"` // z.email()
	for name, c := range map[string]struct {
		schema string
		takes  []string
		leaves []string // refused by the rest of the schema
	}{
		"lookahead": {
			`{"type":"object","properties":{"to":{"type":"string","format":"email",` + email + `},"n":{"type":"integer"}},"required":["to"],"additionalProperties":false}`,
			[]string{`{"to":"ada@example.com"}`, `{"to":"ada@example.c"}`}, []string{`{}`, `{"to":7}`, `{"to":"a@b.cc","n":"1"}`, `{"to":"a@b.cc","more":1}`},
		},
		"an input that is one": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"string","format":"regex"}}}`, []string{`{"a":"(?=x)"}`}, []string{`{"a":1}`},
		},
		"a reference back": {`{"properties":{"a":{"pattern":"^(.)\\1$","maxLength":2}}}`, []string{`{"a":"xx"}`}, []string{`{"a":"xxx"}`}},
		"a script":         {`{"properties":{"a":{"pattern":"^\\p{Script=Greek}+$"}},"required":["a"]}`, []string{`{"a":"αβγ"}`}, []string{`{}`}},
		"below a reference": {
			`{"$ref":"#/$defs/in","$defs":{"in":{"properties":{"a":{"type":"string",` + email + `}}}}}`, []string{`{"a":"x"}`}, []string{`{"a":1}`},
		},
		"one of several": {
			`{"properties":{"a":{"oneOf":[{"type":"string","pattern":"^(?=a)"},{"type":"string","pattern":"^(?=b)"}]}}}`, []string{`{"a":"abc"}`}, []string{`{"a":1}`},
		},
		"one of several beside any of others": {
			`{"properties":{"a":{"anyOf":[{"minLength":1}],"oneOf":[{"type":"string","pattern":"^(?=a)"},{"type":"string"}]}}}`, []string{`{"a":"abc"}`}, []string{`{"a":1}`, `{"a":""}`},
		},
		"not": {`{"properties":{"a":{"type":"string","not":{"pattern":"^(?!x)"}}}}`, []string{`{"a":"xyz"}`}, []string{`{"a":1}`}},
		"a condition": {
			`{"properties":{"a":{"type":"string"}},"if":{"properties":{"a":{"pattern":"^(?!x)"}}},"then":{"required":["b"]},"else":{"required":["c"]}}`,
			[]string{`{"a":"xyz","c":1}`, `{"a":"abc","b":1}`}, []string{`{"a":1}`},
		},
		"names of members": {
			`{"patternProperties":{"^(?!x)":{"type":"integer"},"^y":{"type":"string"}},"additionalProperties":false}`, []string{`{"a":1}`, `{"y":"1"}`}, []string{`{"y":1}`},
		},
		"members that are not mentioned": {
			`{"allOf":[{"patternProperties":{"^(?!x)":{}}}],"properties":{"n":{"type":"integer"}},"unevaluatedProperties":false}`, []string{`{"a":1}`}, []string{`{"n":"1"}`},
		},
		"at most so many items": {
			`{"properties":{"a":{"type":"array","contains":{"pattern":"^(?!x)"},"maxContains":1}}}`, []string{`{"a":["xa","b"]}`, `{"a":["x1","x2","b"]}`}, []string{`{"a":1}`},
		},
		"items, and names": {
			`{"properties":{"a":{"items":{"pattern":"^(?!x)","maxLength":2}},"b":{"propertyNames":{"pattern":"^(?!x)"}}}}`, []string{`{"a":["y"],"b":{"y":1}}`}, []string{`{"a":["yyy"]}`},
		},
		"a value that looks like one": {
			`{"properties":{"a":{"const":{"pattern":"(?!x)"}},"pattern":{"type":"string","pattern":"(?!x)"}}}`, []string{`{"a":{"pattern":"(?!x)"},"pattern":"x"}`}, []string{`{"a":{}}`, `{"pattern":1}`},
		},
	} {
		check, err := schemas.Compile([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: got %v, want it compiled", name, err)
			continue
		}
		for _, input := range c.takes {
			if err := check([]byte(input)); err != nil {
				t.Errorf("%s: %s: got %v, want it taken", name, input, err)
			}
		}
		for _, input := range c.leaves {
			if err := check([]byte(input)); err == nil {
				t.Errorf("%s: got %s taken, want it refused by the rest of the schema", name, input)
			}
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
