package pi

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// command is one frame of a client, decoded (section 4). The codec keeps every
// field: what a command does not use is ignored, not lost.
type command struct {
	fields members
	size   int // of the frame, in bytes
	// kind is the type, or "" when it is no string.
	kind string
	// id is the id, or "" when there is none or it is no string.
	id string
	// session is the sessionId, or "" when there is none or it is no string.
	session string
	// spec is what the table knows of the type; nil of an unknown one.
	spec *spec
}

// members are those of an object, by their exact names.
type members []strictjson.Member

// get returns the value of the member of that name.
func (m members) get(name string) (json.RawMessage, bool) {
	for i := range m {
		if string(m[i].Key) == name {
			return m[i].Value, true
		}
	}
	return nil, false
}

// unknownCommand is what a response names when the frame names nothing.
const unknownCommand = `"unknown"`

// decode reads a frame. It returns an error, which says what to change, for what is
// not strict JSON or longer than limit bytes; a value that is no object yields a
// command without fields.
func decode(frame []byte, limit int) (command, error) {
	var c command
	var err error
	if c.fields, err = strictjson.Members(frame, strictjson.Limits{Bytes: limit}); err != nil {
		return c, err
	}
	c.size = len(frame)
	c.kind, _ = c.text("type")
	c.id, _ = c.text("id")
	c.session, _ = c.text("sessionId")
	c.spec = table[c.kind]
	return c, nil
}

// text returns a field that is a string.
func (c command) text(name string) (string, bool) {
	raw, _ := c.fields.get(name)
	if !wire.IsString(raw) {
		return "", false
	}
	if !bytes.ContainsRune(raw, '\\') { // it was checked to be UTF-8
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// has reports whether the frame has the field, whatever its value.
func (c command) has(name string) bool {
	_, ok := c.fields.get(name)
	return ok
}

// whole returns a field that is an integer, in any notation.
func (c command) whole(name string) (int64, bool) {
	raw, ok := c.fields.get(name)
	if !ok {
		return 0, false
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil || string(raw) == "null" {
		return 0, false
	}
	const exact = 1 << 53
	if f != math.Trunc(f) || math.Abs(f) > exact {
		return 0, false
	}
	return int64(f), true
}

// list returns a field that is an array.
func (c command) list(name string) ([]json.RawMessage, bool) {
	raw, _ := c.fields.get(name)
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	var items []json.RawMessage
	return items, json.Unmarshal(raw, &items) == nil
}

// object returns a field that is an object, as a command of its own so that its
// members can be read alike.
func (c command) object(name string) (command, bool) {
	raw, _ := c.fields.get(name)
	return objectOf(raw)
}

func objectOf(raw json.RawMessage) (command, bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return command{}, false
	}
	fields, err := strictjson.Members(raw, strictjson.Limits{Bytes: len(raw)})
	return command{fields: fields}, err == nil
}

// is reports whether the field has the JSON text given.
func (c command) is(name string, texts ...string) bool {
	raw, _ := c.fields.get(name)
	return slices.Contains(texts, string(raw))
}

// response is what a command came to (section 5).
type response struct {
	data     json.RawMessage
	err      string // empty of a success
	version  int
	hasV     bool
	timedOut bool
	replayed bool
}

// appendResponse appends the response to c. The id and the type are echoed as
// they came, valid or not.
func appendResponse(dst []byte, c command, r response) []byte {
	id, ok := c.fields.get("id")
	dst = append(slices.Grow(dst, 112+len(id)+len(r.data)+len(r.err)), '{')
	if ok {
		dst = append(append(append(dst, `"id":`...), id...), ',')
	}
	dst = append(dst, `"type":"response","command":`...)
	if kind, ok := c.fields.get("type"); ok {
		dst = append(dst, kind...)
	} else {
		dst = append(dst, unknownCommand...)
	}
	return append(appendOutcome(dst, r, true), '}')
}

// refusal is the response to a frame that could not even be read.
func refusal(text string) []byte { return appendResponse(nil, command{}, response{err: text}) }
