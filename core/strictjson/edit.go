package strictjson

import (
	"encoding/json"
	"slices"
)

// Field is a member to be written into an object.
type Field struct {
	Key   string
	Value json.RawMessage
}

// Set returns the text of an object in which the fields replace the members with their
// keys, or follow the other members. All other bytes stay unchanged, and so does a value
// that is not an object.
func (v Value) Set(fields ...Field) []byte {
	text := v.Raw()
	if v.Kind() != Object {
		return slices.Clone(text)
	}
	out := make([]byte, 0, len(text)+64*len(fields))
	start, done, some := int(v.node().from), 0, v.Len() > 0
	written := make([]bool, len(fields))
	for key, value := range v.Members() {
		if i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == string(key) }); i >= 0 {
			n := value.node()
			out = append(append(out, text[done:int(n.from)-start]...), fields[i].Value...)
			done, written[i] = int(n.to)-start, true
		}
	}
	end := len(text) - 1 // where the closing brace is, or the space before it
	for end > done && text[end-1] <= ' ' {
		end--
	}
	out = append(out, text[done:end]...)
	for i, f := range fields {
		if written[i] {
			continue
		}
		if some {
			out = append(out, ',')
		}
		some = true
		key, _ := json.Marshal(f.Key) // a string always encodes
		out = append(append(append(out, key...), ':'), f.Value...)
	}
	return append(out, text[end:]...)
}

// Without returns the text of an object without the members of the keys, and how many
// members are left. All other bytes stay unchanged.
func (v Value) Without(keys ...string) (text []byte, left int) {
	text = v.Raw()
	if v.Kind() != Object {
		return text, 0
	}
	size := len(text)
	for _, key := range keys {
		size -= len(v.Get(key).Raw())
	}
	out := make([]byte, 0, size)
	start, last := int(v.node().from), 0
	for key, value := range v.Members() {
		n := value.node()
		from, to := int(n.keyFrom)-1-start, int(n.to)-start
		if last == 0 {
			out, last = append(out, text[:from]...), from
		}
		if !slices.Contains(keys, string(key)) {
			if left++; left == 1 {
				last = from
			}
			out = append(out, text[last:to]...)
		}
		last = to
	}
	return append(out, text[last:]...), left
}
