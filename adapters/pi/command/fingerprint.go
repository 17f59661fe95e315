package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// fingerprint identifies what a command asks for, without the tokens that name it (section
// 8.3): two commands with the same fingerprint have the same intent.
type fingerprint [sha256.Size]byte

// String returns the fingerprint as the history of commands shows it.
func (f fingerprint) String() string { return "v2:sha256:" + hex.EncodeToString(f[:]) }

// fingerprintOf digests the canonical JSON of a command without id and idempotencyKey.
// Everything else counts, unknown fields included (facts, section 6.4).
func fingerprintOf(c Command) fingerprint {
	room := make([]byte, 0, len(c.object.Raw())+2)
	return sha256.Sum256(appendObject(room, c.object, "id", "idempotencyKey"))
}

// appendCanonical appends a value with sorted members, strings without needless escapes,
// and numbers as JavaScript writes them.
func appendCanonical(dst []byte, v strictjson.Value) []byte {
	switch v.Kind() {
	case strictjson.String:
		if !v.Escaped() {
			return append(dst, v.Raw()...) // canonical already, as most strings are
		}
		text, _ := v.Text()
		return strictjson.AppendString(dst, text)
	case strictjson.Number:
		return appendNumber(dst, json.Number(v.Raw()))
	case strictjson.Array:
		dst = append(dst, '[')
		first := true
		for item := range v.Items() {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendCanonical(dst, item)
		}
		return append(dst, ']')
	case strictjson.Object:
		return appendObject(dst, v)
	}
	return append(dst, v.Raw()...)
}

// appendObject appends the canonical form of an object without some of its members.
func appendObject(dst []byte, v strictjson.Value, without ...string) []byte {
	type member struct {
		key   []byte
		value strictjson.Value
	}
	var few [8]member
	members := few[:0]
	for key, value := range v.Members() {
		if !slices.Contains(without, string(key)) {
			members = append(members, member{key, value})
		}
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(strictjson.AppendString(dst, string(m.key)), ':')
		dst = appendCanonical(dst, m.value)
	}
	return append(dst, '}')
}

func appendNumber(dst []byte, n json.Number) []byte {
	f, err := n.Float64()
	switch {
	case err != nil: // outside the range of JavaScript
		return append(dst, n...)
	case f == 0:
		return append(dst, '0')
	}
	return append(dst, strictjson.Encode(f)...)
}
