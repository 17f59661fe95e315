package schemas

import "regexp"

// The keywords whose values are a schema or a list of schemas, and those whose values have schemas by
// names.
var (
	ofSchemas = []string{
		"additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if", "items", "not", "oneOf", "prefixItems", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties",
	}
	ofNamed = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// loosen removes the patterns of a schema that are no expressions of Go, such as those with lookahead: a
// pattern is one of ECMA-262 (JSON Schema 2020-12, core, section 6.4). What is left takes whatever the
// whole schema takes: keywords that take less because a part takes more are removed as well.
func loosen(schema any) {
	loose := false
	each(schema, func(s map[string]any) {
		if text, is := s["pattern"].(string); is && !compiles(text) {
			delete(s, "pattern")
			loose = true
		}
		if s["format"] == "regex" { // of an input
			delete(s, "format")
			loose = true
		}
		named, _ := s["patternProperties"].(map[string]any)
		for text := range named {
			if !compiles(text) {
				delete(named, text)
				delete(s, "additionalProperties")
				loose = true
			}
		}
	})
	if loose {
		each(schema, weaken)
	}
}

// weaken removes the keywords of a schema that may take less because a part of them takes more.
func weaken(s map[string]any) {
	for _, keyword := range []string{"not", "if", "then", "else", "maxContains", "unevaluatedItems", "unevaluatedProperties"} {
		delete(s, keyword)
	}
	if one, is := s["oneOf"]; is { // more than one of them may fit now
		delete(s, "oneOf")
		all, _ := s["allOf"].([]any)
		s["allOf"] = append(all, map[string]any{"anyOf": one})
	}
}

// each calls visit with a schema and all its parts.
func each(schema any, visit func(map[string]any)) {
	switch s := schema.(type) {
	case []any:
		for _, part := range s {
			each(part, visit)
		}
	case map[string]any:
		visit(s)
		for _, keyword := range ofSchemas {
			each(s[keyword], visit)
		}
		for _, keyword := range ofNamed {
			named, _ := s[keyword].(map[string]any)
			for _, part := range named {
				each(part, visit)
			}
		}
	}
}

func compiles(text string) bool {
	_, err := regexp.Compile(text)
	return err == nil
}
