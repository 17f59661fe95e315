package wire

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Mirrored is an argument that a modern HTTP client repeats as a header, since its schema has
// x-mcp-header (2026-07-28, basic/transports/streamable-http, "Custom Headers").
type Mirrored struct {
	path   []string
	header string
}

// MirroredIn returns the mirrored arguments of an input schema. The error says what is wrong
// with the annotation: such a tool must not be offered.
func MirroredIn(schema strictjson.Value) ([]Mirrored, error) {
	var found []Mirrored
	err := findMirrored(schema, nil, &found)
	return found, err
}

func findMirrored(schema strictjson.Value, at []string, found *[]Mirrored) error {
	for key, property := range schema.Get("properties").Members() {
		path := append(slices.Clone(at), string(key))
		if err := findMirrored(property, path, found); err != nil {
			return err
		}
		annotation := property.Get("x-mcp-header")
		if !annotation.Exists() {
			continue
		}
		name, _ := annotation.Text()
		kind, _ := property.Get("type").Text()
		switch where := strings.Join(path, "."); {
		case name == "" || strings.ContainsFunc(name, notOfHeaders):
			return fmt.Errorf("x-mcp-header of %s is %.40s, want the name of a header", where, annotation.Raw())
		case kind != "string" && kind != "integer" && kind != "boolean":
			return fmt.Errorf("x-mcp-header of %s: only strings, integers and booleans can be a header", where)
		}
		for _, other := range *found {
			if strings.EqualFold(other.header, name) {
				return fmt.Errorf("x-mcp-header %s is used twice", name)
			}
		}
		*found = append(*found, Mirrored{path, name})
	}
	return nil
}

// notOfHeaders reports whether a rune is no token character (RFC 9110, section 5.6.2).
func notOfHeaders(r rune) bool {
	return NotOfNames(r) && !strings.ContainsRune("!#$%&'*+^`|~", r)
}

// Set sets the header, unless the argument is absent or not of a kind that a header can have.
func (m Mirrored) Set(h http.Header, arguments strictjson.Value) {
	if text, ok := m.text(arguments); ok {
		h.Set(HeaderParam+m.header, EncodeHeader(text))
	}
}

// Check returns an error if the header does not say the same as the argument, or only one of
// them is there.
func (m Mirrored) Check(h http.Header, arguments strictjson.Value) error {
	name := HeaderParam + m.header
	values := h.Values(name)
	text, here := m.text(arguments)
	switch {
	case !here && len(values) == 0:
		return nil
	case len(values) == 0:
		return fmt.Errorf("missing required %s header, which repeats the argument %s", name, strings.Join(m.path, "."))
	case !here:
		return fmt.Errorf("the %s header repeats the argument %s, which is missing", name, strings.Join(m.path, "."))
	}
	said, ok := decode(values[0])
	if !ok {
		said, ok = values[0], !encoded(values[0])
	}
	if !ok || said != text || len(values) > 1 {
		return fmt.Errorf("the %s header %.100q does not match the argument %s, %.100q", name, values[0], strings.Join(m.path, "."), text)
	}
	return nil
}

// text returns the argument as a text, or false for none.
func (m Mirrored) text(arguments strictjson.Value) (string, bool) {
	v := arguments.Get(m.path...)
	if text, ok := v.Text(); ok {
		return text, true
	}
	if v.Kind() == strictjson.Bool || v.IsIntegerLiteral() {
		return string(v.Raw()), true
	}
	return "", false
}
