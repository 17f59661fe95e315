package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// node is a compiled schema. It has the keywords type, enum, const, required, anyOf of
// required, properties, items, minLength of 1 and minimum.
type node struct {
	// types are the allowed types; none means all.
	types types
	// what is the description, a phrase that can follow "send".
	what string
	// values are the only values allowed, as JSON without needless escapes; nil for any.
	values []json.RawMessage
	// members are the members of an object that the schema names.
	members map[string]*member
	// required are the names of members that must be there, oneOf of those of which at
	// least one must be.
	required, oneOf []string
	// items is the schema of an array's items; nil for any.
	items *node
	// nonEmpty refuses the empty string.
	nonEmpty bool
	// least is the minimum of a number; nil for any.
	least *float64
}

// member is a member of an object.
type member struct {
	node *node // nil for any value
	// bit is the member in the set of members that were seen.
	bit uint64
}

// types is a set of JSON types.
type types uint8

const (
	null types = 1 << iota
	boolean
	integer // a number without fraction
	number
	text
	array
	object
)

// typeNames are the types by their names in a schema, in the order of error messages.
var typeNames = []struct {
	name      string
	is        types
	one, many string
}{
	{"string", text, "a string", "strings"},
	{"integer", integer, "a whole number", "whole numbers"},
	{"number", number, "a number", "numbers"},
	{"boolean", boolean, "true or false", "booleans"},
	{"array", array, "an array", "arrays"},
	{"object", object, "an object", "objects"},
	{"null", null, "null", "nulls"},
}

// deepest is the maximum nesting of schemas; one that contains itself exceeds it.
const deepest = 32

// newNode returns the node of a schema at a depth, or an error that names a keyword that
// nodes do not have.
func newNode(s *jsonschema.Schema, depth int) (*node, error) {
	if depth > deepest {
		return nil, errors.New("a schema that contains itself")
	}
	if err := unsupported(s); err != nil {
		return nil, err
	}
	if s.Ref != nil {
		n, err := newNode(s.Ref, depth+1)
		if err == nil && s.Description != "" {
			n.what = s.Description
		}
		return n, err
	}
	n := &node{what: s.Description, required: s.Required, nonEmpty: s.MinLength == 1}
	for _, name := range s.Types {
		for _, t := range typeNames {
			if t.name == name {
				n.types |= t.is
			}
		}
	}
	for _, v := range slices.Concat(s.Enum, s.Constant) {
		if said, isText := v.(string); isText {
			n.values = append(n.values, strictjson.AppendString(nil, said))
		} else {
			n.values = append(n.values, strictjson.Encode(v))
		}
	}
	if s.Minimum != nil {
		least, _ := s.Minimum.Float64()
		n.least = &least
	}
	if s.Items2020 != nil {
		items, err := newNode(s.Items2020, depth+1)
		if err != nil {
			return nil, err
		}
		n.items = items
	}
	for _, alternative := range s.AnyOf {
		n.oneOf = append(n.oneOf, alternative.Required...)
	}
	return n, n.addMembers(s, depth)
}

// addMembers adds all members that the schema names.
func (n *node) addMembers(s *jsonschema.Schema, depth int) error {
	n.members = map[string]*member{}
	for name, schema := range s.Properties {
		of, err := newNode(schema, depth+1)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n.members[name] = &member{node: of}
	}
	bit := uint64(1)
	for _, name := range slices.Concat(n.required, n.oneOf) {
		m := n.members[name]
		if m == nil {
			m = &member{}
			n.members[name] = m
		}
		if m.bit == 0 {
			if bit == 0 {
				return errors.New("more than 64 required members")
			}
			m.bit = bit
			bit <<= 1
		}
	}
	return nil
}

// unsupported returns the name of a keyword that nodes do not have.
func unsupported(s *jsonschema.Schema) error {
	for keyword, used := range map[string]bool{
		"a boolean schema":     s.Always != nil,
		"format":               s.Format != "",
		"not":                  s.Not != nil,
		"allOf":                len(s.AllOf) > 0,
		"oneOf":                len(s.OneOf) > 0,
		"if":                   s.If != nil,
		"$dynamicRef":          s.DynamicRef != nil || s.RecursiveRef != nil,
		"minProperties":        s.MinProperties != -1,
		"maxProperties":        s.MaxProperties != -1,
		"propertyNames":        s.PropertyNames != nil,
		"patternProperties":    len(s.PatternProperties) > 0 || s.RegexProperties,
		"additionalProperties": s.AdditionalProperties != nil || s.UnevaluatedProperties != nil,
		"dependencies":         len(s.Dependencies) > 0 || len(s.DependentRequired) > 0 || len(s.DependentSchemas) > 0,
		"minItems":             s.MinItems != -1,
		"maxItems":             s.MaxItems != -1,
		"uniqueItems":          s.UniqueItems,
		"prefixItems":          s.Items != nil || s.AdditionalItems != nil || len(s.PrefixItems) > 0 || s.UnevaluatedItems != nil,
		"contains":             s.Contains != nil,
		"minLength":            s.MinLength > 1,
		"maxLength":            s.MaxLength != -1,
		"pattern":              s.Pattern != nil,
		"contentEncoding":      s.ContentEncoding != "" || s.ContentMediaType != "" || s.ContentSchema != nil,
		"maximum":              s.Maximum != nil || s.ExclusiveMaximum != nil || s.ExclusiveMinimum != nil,
		"multipleOf":           s.MultipleOf != nil,
		"an exact minimum":     s.Minimum != nil && !exact(s.Minimum),
		"keywords beside $ref": s.Ref != nil && len(s.Types)+len(s.Enum)+len(s.Constant)+len(s.Required)+len(s.Properties)+len(s.AnyOf) > 0,
		"structured enum":      structured(s.Enum) || structured(s.Constant),
		"enum beside const":    len(s.Enum) > 0 && len(s.Constant) > 0,
	} {
		if used {
			return fmt.Errorf("keyword %s", keyword)
		}
	}
	for _, alternative := range s.AnyOf {
		if len(alternative.Required) != 1 || len(alternative.Types)+len(alternative.Properties)+len(alternative.Enum)+len(alternative.Constant) > 0 {
			return errors.New("keyword anyOf, but for one required member each")
		}
		if err := unsupported(alternative); err != nil {
			return err
		}
	}
	return nil
}

func exact(r *big.Rat) bool {
	_, ok := r.Float64()
	return ok
}

func structured(values []any) bool {
	for _, v := range values {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
	}
	return false
}
