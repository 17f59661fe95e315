package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// canonical returns the canonical form of a JSON object (RFC 8785), without the member
// omit of the outermost object: no white space, members sorted by the UTF-16 code units
// of their names, only the escapes that JSON needs, numbers as ECMAScript writes them.
func canonical(text []byte, omit string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, err
	}
	delete(object, omit)
	return appendCanonical(nil, object)
}

func appendCanonical(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return fmt.Append(b, v), nil
	case string:
		return appendString(b, v), nil
	case json.Number:
		return appendNumber(b, v)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendCanonical(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		return appendObject(b, v)
	}
	return nil, fmt.Errorf("%T is no JSON", v)
}

func appendObject(b []byte, object map[string]any) (_ []byte, err error) {
	type member struct {
		name  string
		units []uint16
	}
	members := make([]member, 0, len(object))
	for name := range object {
		members = append(members, member{name, utf16.Encode([]rune(name))})
	}
	slices.SortFunc(members, func(a, b member) int { return slices.Compare(a.units, b.units) })
	b = append(b, '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, m.name), ':')
		if b, err = appendCanonical(b, object[m.name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// shortEscapes are the characters with a two-character escape.
var shortEscapes = map[byte]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r', '"': '"', '\\': '\\'}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		short, escaped := shortEscapes[c]
		switch {
		case escaped:
			b = append(b, '\\', short)
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04x`, c)
		case c >= utf8.RuneSelf:
			_, n := utf8.DecodeRuneInString(s[i:])
			b = append(b, s[i:i+n]...)
			i += n
			continue
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b, '"')
}

func appendNumber(b []byte, n json.Number) ([]byte, error) {
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return nil, errors.New("a number is too large for a double")
	}
	if f == 0 {
		return append(b, '0'), nil // also for -0
	}
	text, err := json.Marshal(f) // has the form of ECMAScript
	return append(b, text...), err
}
