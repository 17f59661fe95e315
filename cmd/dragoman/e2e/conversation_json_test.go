package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// jsonValue is a JSON value that keeps the order of its members and the digits of its numbers.
type jsonValue struct {
	open  byte   // '{', '[' or '"'; 0 of a number, true, false or null
	text  string // a string without its quotes, or the word of a scalar
	keys  []string
	items []*jsonValue
}

func textValue(s string) *jsonValue { return &jsonValue{open: '"', text: s} }

// parseJSON reads one value.
func parseJSON(b []byte) (*jsonValue, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := readJSON(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is text after the value: %.40q", b[d.InputOffset():])
	}
	return v, nil
}

func readJSON(d *json.Decoder) (*jsonValue, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case string:
		return textValue(t), nil
	case json.Delim:
		v := &jsonValue{open: byte(t)}
		for d.More() {
			if v.open == '{' {
				key, err := d.Token()
				if err != nil {
					return nil, err
				}
				v.keys = append(v.keys, key.(string))
			}
			item, err := readJSON(d)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
		}
		_, err := d.Token()
		return v, err
	case nil:
		return &jsonValue{text: "null"}, nil
	}
	return &jsonValue{text: fmt.Sprint(t)}, nil
}

// member returns the value of a key, or nil.
func (v *jsonValue) member(key string) *jsonValue {
	if i := slices.Index(v.keys, key); i >= 0 {
		return v.items[i]
	}
	return nil
}

// set adds a member, or replaces its value.
func (v *jsonValue) set(key string, item *jsonValue) {
	if i := slices.Index(v.keys, key); i >= 0 {
		v.items[i] = item
		return
	}
	v.keys, v.items = append(v.keys, key), append(v.items, item)
}

// remove removes a member and returns its value, or nil.
func (v *jsonValue) remove(key string) *jsonValue {
	i := slices.Index(v.keys, key)
	if i < 0 {
		return nil
	}
	item := v.items[i]
	v.keys, v.items = slices.Delete(v.keys, i, i+1), slices.Delete(v.items, i, i+1)
	return item
}

// change returns a copy in which f has replaced every string.
func (v *jsonValue) change(f func(s *jsonValue) (*jsonValue, error)) (*jsonValue, error) {
	if v.open == '"' {
		return f(v)
	}
	out := &jsonValue{open: v.open, text: v.text, keys: slices.Clone(v.keys), items: make([]*jsonValue, len(v.items))}
	for i, item := range v.items {
		var err error
		if out.items[i], err = item.change(f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// line returns the value on one line.
func (v *jsonValue) line() string {
	switch v.open {
	case '"':
		return quoteJSON(v.text)
	case '{', '[':
		parts := make([]string, len(v.items))
		for i, item := range v.items {
			parts[i] = v.name(i) + item.line()
		}
		return string(v.open) + strings.Join(parts, ", ") + string(v.open+2)
	}
	return v.text
}

// name returns the prefix of item i: its key, in an object.
func (v *jsonValue) name(i int) string {
	if v.open == '{' {
		return quoteJSON(v.keys[i]) + ": "
	}
	return ""
}

func quoteJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // strings always encode
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lineWidth is the maximum length of a line in a conversation.
const lineWidth = 120

// pretty returns the value broken into indented lines where it is too long for one.
func (v *jsonValue) pretty() string { return v.indented("", 0) }

func (v *jsonValue) indented(indent string, taken int) string {
	line := v.line()
	if len(v.items) == 0 || len(indent)+taken+len(line) <= lineWidth {
		return line
	}
	var b strings.Builder
	b.WriteByte(v.open)
	inner := indent + "  "
	for i, item := range v.items {
		if i > 0 {
			b.WriteByte(',')
		}
		name := v.name(i)
		b.WriteString("\n" + inner + name + item.indented(inner, len(name)+1))
	}
	b.WriteString("\n" + indent + string(v.open+2))
	return b.String()
}
