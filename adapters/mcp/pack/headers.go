package pack

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// mirrored is an argument that a modern HTTP client repeats as a header, since its schema has
// x-mcp-header (2026-07-28, basic/transports/streamable-http, "Custom Headers").
type mirrored struct {
	path   []string
	header string
}

// mirroredIn returns the mirrored arguments of an input schema. The error says what is wrong
// with the annotation: such a tool must not be offered.
func mirroredIn(schema strictjson.Value) ([]mirrored, error) {
	var found []mirrored
	err := findMirrored(schema, nil, &found)
	return found, err
}

func findMirrored(schema strictjson.Value, at []string, found *[]mirrored) error {
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
		*found = append(*found, mirrored{path, name})
	}
	return nil
}

// notOfHeaders reports whether a rune is no token character (RFC 9110, section 5.6.2).
func notOfHeaders(r rune) bool {
	return wire.NotOfNames(r) && !strings.ContainsRune("!#$%&'*+^`|~", r)
}

// setMirrored sets the headers of the arguments of a call. Arguments that are absent or not
// of a kind that a header can have are left out, as the server expects.
func setMirrored(h http.Header, all []mirrored, arguments strictjson.Value) {
	for _, m := range all {
		v := arguments.Get(m.path...)
		text, ok := v.Text()
		switch {
		case ok:
			text = wire.EncodeHeader(text)
		case v.Kind() == strictjson.Bool || v.IsIntegerLiteral():
			text = string(v.Raw())
		default:
			continue
		}
		h.Set(wire.HeaderParam+m.header, text)
	}
}
