package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Example is an example of a message.
type Example struct {
	// Kind is the kind of the envelope, About its purpose.
	Kind  string          `json:"kind"`
	About string          `json:"about"`
	JSON  json.RawMessage `json:"example"`

	schema *jsonschema.Schema
}

// ACPExample returns an example of an ACP envelope of a kind, and whether the kind exists.
func ACPExample(kind string) (Example, bool) {
	s := ACP(kind)
	if s == nil {
		return Example{}, false
	}
	text, err := files.ReadFile(path.Join("acp/samples", kind+".json"))
	if err != nil {
		panic(fmt.Sprintf("schemas: there is no example of %s in the program: %v", kind, err))
	}
	library := s.compile().library
	return Example{Kind: kind, About: library.Description, JSON: text, schema: library}, true
}

// Annotated returns the example with a comment after every member that describes it, and
// with the names of optional members that it lacks. The comments begin with //; without them
// the text is JSON.
func (e Example) Annotated() string {
	w := &annotator{dec: json.NewDecoder(bytes.NewReader(e.JSON))}
	w.dec.UseNumber()
	w.line("", "", fmt.Sprintf("%s: %s", e.Kind, e.About))
	w.value("", "", e.schema, "")
	return w.out.String()
}

type annotator struct {
	dec *json.Decoder
	out strings.Builder
}

// commentAt is the column of comments after lines that are not longer.
const commentAt = 52

// line writes a line of the example with a comment.
func (w *annotator) line(indent, text, comment string) {
	line := indent + text
	if comment != "" {
		if text != "" {
			line += strings.Repeat(" ", max(1, commentAt-len([]rune(line))))
		}
		line += "// " + comment
	}
	w.out.WriteString(line + "\n")
}

// value writes the next value after its key, and what follows it. of describes it and may be
// nil.
func (w *annotator) value(indent, key string, of *jsonschema.Schema, comment string) {
	token := w.token()
	open, compound := token.(json.Delim)
	comma := func() string {
		if key != "" && w.dec.More() {
			return ","
		}
		return ""
	}
	switch {
	case !compound:
		w.line(indent, key+scalar(token)+comma(), comment)
	case open == '[':
		var items []string
		for w.dec.More() {
			items = append(items, scalar(w.token())) // the lists of the examples have nothing else
		}
		w.token()
		w.line(indent, key+"["+strings.Join(items, ", ")+"]"+comma(), comment)
	default:
		w.line(indent, key+"{", comment)
		w.members(indent+"  ", of)
		w.token()
		w.line(indent, "}"+comma(), "")
	}
}

// members writes the members of an object, and the names of optional ones that it lacks.
func (w *annotator) members(indent string, of *jsonschema.Schema) {
	var has []string
	for w.dec.More() {
		name, _ := w.token().(string)
		has = append(has, name)
		member, comment := memberOf(of, name)
		w.value(indent, `"`+name+`": `, member, comment)
	}
	if of == nil {
		return
	}
	var lacks []string
	for name := range of.Properties {
		if !slices.Contains(has, name) && name != "reply_to" { // an old name, only for old clients
			lacks = append(lacks, name)
		}
	}
	slices.Sort(lacks)
	for _, name := range lacks {
		_, comment := memberOf(of, name)
		w.line(indent, "", fmt.Sprintf("or %q: %s", name, comment))
	}
}

// scalar returns a string, number, boolean or null as JSON.
func scalar(v json.Token) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("schemas: an example in the program has %v: %v", v, err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (w *annotator) token() json.Token {
	t, err := w.dec.Token()
	if err != nil {
		panic(fmt.Sprintf("schemas: an example in the program is no JSON: %v", err))
	}
	return t
}

// memberOf returns the schema of a member of an object, and a comment from it.
func memberOf(of *jsonschema.Schema, name string) (*jsonschema.Schema, string) {
	if of == nil {
		return nil, ""
	}
	member := of.Properties[name]
	if member == nil {
		return nil, ""
	}
	comment, choice := member.Description, member.Enum
	for ref := member.Ref; ref != nil; ref = ref.Ref {
		if comment == "" {
			comment = ref.Description
		}
		choice = append(slices.Clip(choice), ref.Enum...)
	}
	var words []string
	for _, c := range choice {
		if word, ok := c.(string); ok {
			words = append(words, word)
		}
	}
	if len(words) > 0 {
		comment += ": " + strings.Join(words, ", ")
	}
	if slices.Contains(of.Required, name) || slices.ContainsFunc(of.AnyOf, func(s *jsonschema.Schema) bool { return slices.Contains(s.Required, name) }) {
		comment += " (required)"
	}
	return member, comment
}
