package wire

import (
	"bytes"
	"encoding/json"
	"slices"
)

// member is one member of a JSON object: its key, and where it stands. The text of
// the object is well formed, so that nothing is checked again.
type member struct {
	key string
	// begin is where the key begins, from and to where the value does and ends.
	begin, from, to int
}

// members finds the members of the object, in order.
func members(object []byte) []member {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return nil
	}
	var all []member
	for i = skipSpace(object, i+1); i < len(object) && object[i] == '"'; {
		m := member{begin: i}
		i = skipString(object, i)
		m.key = unquote(object[m.begin:i])
		i = skipSpace(object, i) + 1 // the colon
		m.from = skipSpace(object, i)
		m.to = skipValue(object, m.from)
		all = append(all, m)
		if i = skipSpace(object, m.to); i < len(object) && object[i] == ',' {
			i = skipSpace(object, i+1)
		}
	}
	return all
}

// placeOf finds the value that the keys lead to, from object to object: where it
// begins and ends, twice the same where it is not there.
func placeOf(object []byte, keys ...string) (from, to int) {
	to = len(object)
	for _, key := range keys {
		within := members(object[from:to])
		i := slices.IndexFunc(within, func(m member) bool { return m.key == key })
		if i < 0 {
			return 0, 0
		}
		from, to = from+within[i].from, from+within[i].to
	}
	return from, to
}

// Field is a member to be written.
type Field struct {
	Key   string
	Value json.RawMessage
}

// SetMembers returns the object with the values of the fields in place of what it
// had under their keys, or behind everything else. All other bytes stay.
func SetMembers(object []byte, fields ...Field) []byte {
	have := members(object)
	out := make([]byte, 0, len(object)+64*len(fields))
	done := 0
	written := make([]bool, len(fields))
	for _, m := range have {
		for i, f := range fields {
			if f.Key == m.key {
				out = append(append(out, object[done:m.from]...), f.Value...)
				done, written[i] = m.to, true
			}
		}
	}
	if len(have) == 0 {
		done = bytes.IndexByte(object, '{') + 1
		out = append(out[:0], object[:done]...)
	} else {
		last := have[len(have)-1].to
		out = append(out, object[done:last]...)
		done = last
	}
	rest := len(have) > 0
	for i, f := range fields {
		if written[i] {
			continue
		}
		if rest {
			out = append(out, ',')
		}
		rest = true
		out = append(append(appendText(out, f.Key), ':'), f.Value...)
	}
	return append(out, object[done:]...)
}

// dropMember returns the object without the member of the key.
func dropMember(object []byte, key string) []byte {
	all := members(object)
	for i, m := range all {
		if m.key != key {
			continue
		}
		begin, end := m.begin, m.to
		switch {
		case i > 0:
			begin = all[i-1].to
		case len(all) > 1:
			end = all[1].begin
		}
		return append(append(make([]byte, 0, len(object)), object[:begin]...), object[end:]...)
	}
	return object
}

// unquote reads a key; most have no escapes.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // well formed
	return s
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the place behind the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns the place behind the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ' ', '\t', '\n', '\r', ':':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return i
}
