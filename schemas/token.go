package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// space steps over white space.
func (w *walk) space() {
	for w.pos < len(w.data) {
		switch w.data[w.pos] {
		case ' ', '\t', '\n', '\r':
			w.pos++
		default:
			return
		}
	}
}

// typ is the type of the value that begins at pos, 0 where none does. A number
// is an integer too if it looks like one.
func (w *walk) typ() types {
	switch c := w.data[w.pos]; {
	case c == '"':
		return text
	case c == '{':
		return object
	case c == '[':
		return array
	case c == 't' || c == 'f':
		return boolean
	case c == 'n':
		return null
	case c == '-' || '0' <= c && c <= '9':
		i := w.pos + 1
		i += digits(w.data[i:])
		if i < len(w.data) && (w.data[i] == '.' || w.data[i]|0x20 == 'e') {
			return number
		}
		return integer | number
	}
	return 0
}

// scalar returns the text of the string, number or word that begins at pos and
// steps behind it. Numbers and words it returns are well formed.
func (w *walk) scalar() ([]byte, *Violation) {
	start := w.pos
	if w.data[start] == '"' {
		if !w.skipString() {
			return nil, w.broken()
		}
		return w.data[start:w.pos], nil
	}
	for w.pos < len(w.data) && inScalar[w.data[w.pos]] {
		w.pos++
	}
	raw := w.data[start:w.pos]
	if !isScalar(raw) {
		return nil, w.broken()
	}
	return raw, nil
}

// isScalar tells whether raw is a number, true, false or null.
func isScalar(raw []byte) bool {
	switch string(raw) {
	case "true", "false", "null":
		return true
	}
	raw = bytes.TrimPrefix(raw, []byte("-"))
	n := digits(raw)
	if n == 0 || n > 1 && raw[0] == '0' {
		return false
	}
	if raw = raw[n:]; len(raw) > 0 && raw[0] == '.' {
		n := digits(raw[1:])
		if n == 0 {
			return false
		}
		raw = raw[1+n:]
	}
	if len(raw) > 0 && raw[0]|0x20 == 'e' {
		raw = raw[1:]
		if len(raw) > 0 && (raw[0] == '+' || raw[0] == '-') {
			raw = raw[1:]
		}
		n := digits(raw)
		return n > 0 && n == len(raw)
	}
	return len(raw) == 0
}

// digits counts the digits that text begins with.
func digits(text []byte) int {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}

// inScalar are the bytes of numbers and words.
var inScalar = func() (in [256]bool) {
	for _, c := range []byte("+-.0123456789Eaeflnrstu") {
		in[c] = true
	}
	return in
}()

// skip steps behind the value that begins at pos, whatever it is.
func (w *walk) skip() *Violation {
	for depth := 0; w.pos < len(w.data); {
		switch w.data[w.pos] {
		case '{', '[':
			depth++
			w.pos++
		case '}', ']':
			depth--
			w.pos++
		case ' ', '\t', '\n', '\r', ',', ':':
			w.pos++
			continue
		default:
			if _, v := w.scalar(); v != nil {
				return v
			}
		}
		if depth <= 0 {
			return nil
		}
	}
	return w.broken()
}

// skipString steps behind the string that begins at pos. It looks for quotes
// and, up to each, for backslashes, so that every byte is looked at twice at most.
func (w *walk) skipString() bool {
	for i := w.pos + 1; ; {
		n := bytes.IndexByte(w.data[i:], '"')
		if n < 0 {
			return false
		}
		end := i + n
		for i < end {
			n := bytes.IndexByte(w.data[i:end], '\\')
			if n < 0 {
				i = end
				break
			}
			i += n + 2 // beyond end if it is the quote that is escaped
		}
		if i == end {
			w.pos = end + 1
			return true
		}
		if i > len(w.data) {
			return false
		}
	}
}

// broken is what is said of text that is no JSON.
func (w *walk) broken() *Violation {
	problem := "not JSON near byte " + strconv.Itoa(w.pos)
	if _, err := decode(w.data); err != nil {
		problem = err.Error()
	}
	return &Violation{Problem: problem, whole: true}
}

// decode reads data as the JSON Schema library wants it.
func decode(data []byte) (any, error) {
	var value any
	err := json.Unmarshal(data, &value)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return nil, errors.New(mismatch.Value + " is out of range")
	case err != nil:
		return nil, errors.New("not JSON: " + err.Error())
	}
	return value, nil
}

// unquote returns what a JSON string says.
func unquote(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
