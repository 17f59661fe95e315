package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// fingerprint tells what a command asks for, apart from the tokens that name it
// (section 8.3): two commands with the same one are the same intent.
type fingerprint [sha256.Size]byte

// String is the fingerprint as the history of commands has it.
func (f fingerprint) String() string { return "v2:sha256:" + hex.EncodeToString(f[:]) }

// fingerprintOf digests the canonical JSON of a command without id and
// idempotencyKey. Everything else counts, fields that nobody knows included (facts,
// section 6.4).
func fingerprintOf(c Command) fingerprint {
	room := 16
	var few [8]*strictjson.Member
	counted := few[:0]
	for i := range c.Fields {
		switch m := &c.Fields[i]; string(m.Key) {
		case "id", "idempotencyKey":
		default:
			room += len(m.Key) + len(m.Value) + 4
			counted = append(counted, m)
		}
	}
	slices.SortFunc(counted, func(a, b *strictjson.Member) int { return bytes.Compare(a.Key, b.Key) })
	var small [256]byte
	b := append(slices.Grow(small[:0], room), '{')
	for i, m := range counted {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(wire.AppendString(b, string(m.Key)), ':')
		b = appendCanonicalRaw(b, m.Value)
	}
	return sha256.Sum256(append(b, '}'))
}

// appendCanonicalRaw appends a JSON value as appendCanonical would. A text without
// escapes is canonical as it stands, and most are.
func appendCanonicalRaw(dst []byte, raw json.RawMessage) []byte {
	if len(raw) > 0 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw...)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil { // it was checked to be JSON
		return append(dst, raw...)
	}
	return appendCanonical(dst, v)
}

// appendCanonical appends a value with the members of objects in order and numbers
// as JavaScript writes them.
func appendCanonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return wire.AppendString(dst, v)
	case json.Number:
		return appendNumber(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, item)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(wire.AppendString(dst, name), ':')
			dst = appendCanonical(dst, v[name])
		}
		return append(dst, '}')
	}
	return dst
}

func appendNumber(dst []byte, n json.Number) []byte {
	f, err := n.Float64()
	switch {
	case err != nil: // beyond what JavaScript can tell apart
		return append(dst, n...)
	case f == 0:
		return append(dst, '0')
	}
	return append(dst, wire.Encode(f)...)
}
