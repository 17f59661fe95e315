package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// shape names the members of an object that the codec gives a meaning to; a
// member with a shape of its own is looked into.
type shape map[string]shape

// Strip returns the object without the members that s names, nil if nothing is
// left. Anything but an object is left as it is.
func (s shape) Strip(object strictjson.Value) json.RawMessage {
	if object.Kind() != strictjson.Object {
		return object.Raw()
	}
	var ms Members // almost no message has any
	for key, value := range object.Members() {
		left := value.Raw()
		if inner, known := s[string(key)]; known && inner == nil {
			continue
		} else if known {
			left = inner.Strip(value)
		}
		if left == nil || string(left) == "null" && s[string(key)] != nil {
			continue
		}
		if ms == nil {
			ms = Members{}
		}
		ms[string(key)] = left
	}
	if ms == nil {
		return nil
	}
	left, err := Marshal(ms)
	if err != nil {
		return nil
	}
	return left
}

// envelopeShape is what has a meaning around a payload. A signature is over the
// message as its sender wrote it: over one that the hub wrote it would be a lie.
var envelopeShape = shape{"type": nil, "id": nil, "timestamp": nil, "payload": nil, "signature": nil}

// Foreign keeps what a message says beyond its meaning, in the form of a message,
// for a peer of the same dialect (promise P11): the members around the payload,
// and left, which is what strip left of the payload.
func (m Message) Foreign(left json.RawMessage) *core.Foreign {
	switch {
	case left != nil && m.more != nil:
		return &core.Foreign{Dialect: Dialect, JSON: overlay(m.more, under("payload", left))}
	case left != nil:
		return &core.Foreign{Dialect: Dialect, JSON: under("payload", left)}
	case m.more != nil:
		return &core.Foreign{Dialect: Dialect, JSON: m.more}
	}
	return nil
}

// MembersOf returns what a peer of the same dialect said beside a meaning, as members
// of a message.
func MembersOf(f *core.Foreign) Members {
	var ms Members
	if f == nil || f.Dialect != Dialect || json.Unmarshal(f.JSON, &ms) != nil {
		return nil
	}
	return ms
}

// Restore adds to a message the members that a peer of the same dialect sent
// beside what has a meaning. What the message has itself stands.
func Restore(frame []byte, f *core.Foreign) []byte {
	if MembersOf(f) == nil {
		return frame
	}
	return overlay(frame, f.JSON)
}

// under is an object with one member.
func under(name string, value json.RawMessage) json.RawMessage {
	object, err := Marshal(Members{name: value})
	if err != nil {
		return nil // it is no JSON
	}
	return object
}

// overlay adds to an object what only the other has, within objects that both
// have too.
func overlay(object, other json.RawMessage) json.RawMessage {
	var a, b Members
	if json.Unmarshal(object, &a) != nil || a == nil || json.Unmarshal(other, &b) != nil {
		return object
	}
	for name, theirs := range b {
		if ours, both := a[name]; both {
			a[name] = overlay(ours, theirs)
		} else {
			a[name] = theirs
		}
	}
	sum, err := Marshal(a)
	if err != nil {
		return object
	}
	return sum
}
