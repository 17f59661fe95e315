package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// maxParts bounds the expanded size of a foreign schema: a small text can refer to itself so
// often that a check would take for ever.
const maxParts = 10_000

// Compile reads the JSON Schema of a tool's input from outside the program and returns a
// function that checks an input against it: like [Schema.Validate], its error names the first
// wrong field. Both need JSON that was checked before. Any draft is accepted; a reference out
// of the schema is an error. What cannot be checked here is left to the tool: a pattern of
// ECMA-262 that Go does not have, and what depends on it. So is what costs a multiple of the input:
// uniqueItems is ignored, and for a schema that contains itself an input must only be an object.
func Compile(source []byte) (func([]byte) error, error) {
	value, err := decode(source)
	if err != nil {
		return nil, err
	}
	loosen(value)
	plain, err := json.Marshal(value) // numbers as float64: the library would unfold 1e999999999
	if err != nil {
		return nil, err
	}
	c := newCompiler(func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("it refers to %s: write out what stands there", url)
	})
	const name = base + "input"
	if err := c.AddResource(name, bytes.NewReader(plain)); err != nil {
		return nil, err
	}
	library, err := c.Compile(name)
	if err != nil {
		return nil, reasonOf(err)
	}
	judge := compiled{library: library}
	if unfold(library, maxParts) <= 0 {
		judge.check = &node{types: object}
	} else if check, err := newNode(library, 0); err == nil {
		check.what = "" // a description of the tool, not of what to send
		judge.check = check
	}
	return (&Schema{compile: func() compiled { return judge }}).Validate, nil
}

// reasonOf returns what is wrong with a schema, without the URL that the library gave it.
func reasonOf(err error) error {
	var whole *jsonschema.SchemaError
	if errors.As(err, &whole) {
		err = whole.Err
	}
	var leaf *jsonschema.ValidationError
	if !errors.As(err, &leaf) {
		return err
	}
	for len(leaf.Causes) > 0 {
		leaf = leaf.Causes[0]
	}
	return &Violation{Path: dotted(leaf.InstanceLocation), Problem: leaf.Message}
}

// unfold returns what is left of a budget of parts after a schema and all its parts. It also
// removes keywords that are too expensive to check.
func unfold(s *jsonschema.Schema, budget int) int {
	s.UniqueItems = false
	for part := range parts(s) {
		if budget <= 0 {
			return 0
		}
		budget = unfold(part, budget-1)
	}
	return budget
}

// parts yields the direct parts of a schema.
func parts(s *jsonschema.Schema) func(func(*jsonschema.Schema) bool) {
	all := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems, []*jsonschema.Schema{
		s.Ref, s.RecursiveRef, s.DynamicRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
		s.Items2020, s.Contains, s.UnevaluatedItems, s.ContentSchema,
	})
	all = slices.AppendSeq(all, maps.Values(s.Properties))
	all = slices.AppendSeq(all, maps.Values(s.PatternProperties))
	all = slices.AppendSeq(all, maps.Values(s.DependentSchemas))
	for _, v := range append(slices.Collect(maps.Values(s.Dependencies)), s.AdditionalProperties, s.Items, s.AdditionalItems) {
		switch v := v.(type) {
		case *jsonschema.Schema:
			all = append(all, v)
		case []*jsonschema.Schema:
			all = append(all, v...)
		}
	}
	return func(yield func(*jsonschema.Schema) bool) {
		for _, part := range all {
			if part != nil && !yield(part) {
				return
			}
		}
	}
}
