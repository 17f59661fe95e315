package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"log"
	"os"
	"slices"
	"strings"
)

func main() {
	in, out := os.Args[1], os.Args[2]
	text, err := os.ReadFile(in) //nolint:gosec // it is said by go:generate
	if err != nil {
		log.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(text, &s); err != nil {
		log.Fatalf("%s: %v", in, err)
	}
	source, err := s.write()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(out, source, 0o644); err != nil { //nolint:gosec // source code
		log.Fatal(err)
	}
}

// schema is the protocol's JSON Schema.
type schema struct {
	Defs map[string]def `json:"$defs"`
}

// def is a definition of the schema, or a part of one.
type def struct {
	Description string          `json:"description"`
	Type        any             `json:"type"`  // a string, or a list with null
	Const       any             `json:"const"` // a text, but of codes
	Format      string          `json:"format"`
	Properties  ordered         `json:"properties"`
	Required    []string        `json:"required"`
	Ref         string          `json:"$ref"`
	AllOf       []def           `json:"allOf"`
	AnyOf       []def           `json:"anyOf"`
	OneOf       []def           `json:"oneOf"`
	Items       *def            `json:"items"`
	Values      any             `json:"additionalProperties"` // a flag, or what the values of a map are
	Default     json.RawMessage `json:"default"`
	Method      string          `json:"x-method"`
}

// ordered is properties in the order of the schema.
type ordered []property

type property struct {
	name     string
	of       string // the definition that it stands in
	required bool
	def      def
}

// UnmarshalJSON keeps the order of an object.
func (o *ordered) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var p def
		if err := d.Decode(&p); err != nil {
			return err
		}
		*o = append(*o, property{name: name.(string), def: p})
	}
	return nil
}

// variants are the definitions of which a value is one.
func (d def) variants() []def { return append(slices.Clone(d.OneOf), d.AnyOf...) }

// target is the name of the definition that a part refers to, "" for none.
func (d def) target() string {
	all := append(append([]def{d}, d.AllOf...), d.variants()...)
	others := slices.DeleteFunc(all, func(p def) bool { return p.Ref == "" })
	if len(others) != 1 {
		return ""
	}
	return strings.TrimPrefix(others[0].Ref, "#/$defs/")
}

// is reports whether a value may be of a type of JSON.
func (d def) is(name string) bool {
	list, _ := d.Type.([]any)
	return d.Type == name || slices.Contains(list, any(name))
}

// members returns what an object of the definition may have: what all its parts have, and what its
// variants have, which is required if each variant requires it. What variants have of different types
// stays as it was sent.
func (s *schema) members(name string, d def) ordered {
	var all ordered
	for _, p := range d.Properties {
		p.of, p.required = name, slices.Contains(d.Required, p.name)
		all = append(all, p)
	}
	for _, part := range append(slices.Clone(d.AllOf), def{Ref: d.Ref}) {
		if to := part.target(); to != "" {
			all = append(all, s.members(to, s.Defs[to])...)
		}
	}
	var theirs ordered
	count := map[string]int{}
	for _, v := range d.variants() {
		for _, p := range s.members(name, v) {
			if p.required {
				count[p.name]++
			}
			i := slices.IndexFunc(theirs, func(other property) bool { return other.name == p.name })
			switch {
			case i < 0:
				theirs = append(theirs, p)
			case s.typeOf(theirs[i]) != s.typeOf(p):
				theirs[i].def = def{Description: p.def.Description}
			}
		}
	}
	for _, p := range theirs {
		p.required = count[p.name] == len(d.variants())
		all = append(all, p)
	}
	return all
}

// typeOf returns the type of a member: a struct, or a pointer to one, for a definition that is
// generated; a text, number or flag; and JSON as it was sent for all else.
func (s *schema) typeOf(p property) string {
	if own, is := exceptions[p.of+"."+p.name]; is {
		return own
	}
	d, pointer := p.def, ""
	if to := d.target(); to != "" {
		if d.is("null") || slices.ContainsFunc(d.AnyOf, func(v def) bool { return v.Type == "null" }) {
			pointer = "*"
		}
		if name := goName(to); name != "" {
			return pointer + name
		}
		d = s.Defs[to]
		if d.is("object") && !slices.ContainsFunc(d.Properties, func(p property) bool { return p.name != "_meta" }) {
			return "*Empty" // its presence declares a capability
		}
	}
	return s.plain(d)
}

// plain returns the type of what is no struct.
func (s *schema) plain(d def) string {
	switch {
	case d.is("string"), len(d.variants()) > 0 && !slices.ContainsFunc(d.variants(), func(v def) bool { return v.Type != "string" }):
		return "string"
	case d.is("boolean"):
		return "bool"
	case strings.HasSuffix(d.Format, "int64"):
		return "int64"
	case d.is("integer"):
		return "int"
	case d.is("array"):
		return "[]" + s.typeOf(property{def: *d.Items})
	}
	if values, is := d.Values.(map[string]any); is && values["type"] == "string" {
		return "map[string]string"
	}
	return raw
}

// raw is the type of what stays as it was sent.
const raw = "json.RawMessage"

// goName returns the name of the type that is generated for a definition, "" for none.
func goName(of string) string {
	for _, t := range types {
		if slices.Contains(t.defs(), of) {
			return t.name
		}
	}
	return ""
}

// write returns the source.
func (s *schema) write() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// Code generated by tools/editortypes from schemas/editor/schema.json. DO NOT EDIT.\n\npackage wire\n\nimport \"encoding/json\"\n")
	for _, e := range enums {
		if err := s.enum(&b, e); err != nil {
			return nil, err
		}
	}
	s.methods(&b)
	for _, t := range types {
		if err := s.object(&b, t); err != nil {
			return nil, err
		}
	}
	return format.Source(b.Bytes())
}

// enum writes the values of a definition: its own, or those that tell its variants apart.
func (s *schema) enum(b *bytes.Buffer, e enum) error {
	d, is := s.Defs[e.of]
	if !is {
		return fmt.Errorf("the schema has no %s", e.of)
	}
	fmt.Fprintf(b, "\n// %s: %s\nconst (\n", e.of, sentence(d.Description))
	for _, v := range d.variants() {
		for _, p := range append(v.Properties, property{def: v}) {
			if value, is := p.def.Const.(string); is {
				fmt.Fprintf(b, "\t// %s\n\t%s = %q\n", sentence(v.Description), e.prefix+camel(value), value)
			}
		}
	}
	b.WriteString(")\n")
	return nil
}

// methods writes the names of all methods.
func (s *schema) methods(b *bytes.Buffer) {
	var all []string
	for _, d := range s.Defs {
		if d.Method != "" {
			all = append(all, d.Method)
		}
	}
	slices.Sort(all)
	b.WriteString("\n// The methods of both sides.\nconst (\n")
	for _, m := range slices.Compact(all) {
		fmt.Fprintf(b, "\tMethod%s = %q\n", camel(m), m)
	}
	b.WriteString(")\n")
}

// object writes a struct.
func (s *schema) object(b *bytes.Buffer, t typ) error {
	var members ordered
	for _, name := range t.defs() {
		d, is := s.Defs[name]
		if !is {
			return fmt.Errorf("the schema has no %s", name)
		}
		for _, p := range s.members(name, d) {
			at := slices.IndexFunc(members, func(other property) bool { return other.name == p.name })
			if at < 0 {
				members = append(members, p)
			} else {
				members[at].required = members[at].required && p.required
			}
		}
	}
	fmt.Fprintf(b, "\n// %s: %s\ntype %s struct {\n", t.name, sentence(s.Defs[t.defs()[0]].Description), t.name)
	// What the protocol does not name comes last.
	slices.SortStableFunc(members, func(a, b property) int { return order(a) - order(b) })
	for _, p := range members {
		kind, omit := s.typeOf(p), ",omitempty"
		if p.required || len(p.def.Default) > 0 && kind != raw {
			omit = ""
		}
		if p.name == "_meta" {
			b.WriteString(beyond[t.name] + "\n")
		} else if p.def.Description != "" {
			fmt.Fprintf(b, "\t// %s\n", sentence(p.def.Description))
		}
		fmt.Fprintf(b, "\t%s %s `json:%q`\n", camel(p.name), kind, p.name+omit)
	}
	b.WriteString("}\n")
	return nil
}

func order(p property) int {
	if p.name == "_meta" {
		return 1
	}
	return 0
}

// sentence returns the first paragraph of a description in one line.
func sentence(description string) string {
	first, _, _ := strings.Cut(description, "\n\n")
	return strings.Join(strings.Fields(first), " ")
}

// camel returns a name of the schema as one of Go.
func camel(name string) string {
	var words []string
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_/$", r) }) {
		start := 0
		for i, r := range word + "A" {
			if r >= 'A' && r <= 'Z' && i > start {
				words = append(words, word[start:i])
				start = i
			}
		}
	}
	for i, w := range words {
		if words[i] = strings.ToUpper(w[:1]) + w[1:]; slices.Contains([]string{"id", "url", "uri", "cwd", "fs", "mcp", "http", "sse"}, strings.ToLower(w)) {
			words[i] = strings.ToUpper(w)
		}
	}
	return strings.Join(words, "")
}
