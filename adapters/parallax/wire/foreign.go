package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// shape names the members of an object that the hub knows. A member with a shape of its
// own is an object with unknown members too.
type shape map[string]shape

// Strip returns the object without the members that s names, nil if none remains. It
// returns anything but an object unchanged.
func (s shape) Strip(object strictjson.Value) json.RawMessage {
	if object.Kind() != strictjson.Object {
		return object.Raw()
	}
	var rest Members // almost no message has any
	for key, value := range object.Members() {
		unknown := value.Raw()
		if inner, known := s[string(key)]; known && inner == nil {
			continue
		} else if known {
			unknown = inner.Strip(value)
			if string(unknown) == "null" {
				continue
			}
		}
		if unknown == nil {
			continue
		}
		if rest == nil {
			rest = Members{}
		}
		rest[string(key)] = unknown
	}
	if rest == nil {
		return nil
	}
	raw, _ := strictjson.Marshal(rest) // what was parsed always encodes
	return raw
}

// envelopeShape names the members around a payload that the hub knows. It has signature
// because a signature is valid only for the message that its sender wrote.
var envelopeShape = shape{"type": nil, "id": nil, "timestamp": nil, "payload": nil, "signature": nil}

// Foreign returns the unknown members of a message for a peer of the same dialect
// (promise P11), in the form of a message: those around the payload and rest, which
// [shape.Strip] returned for the payload.
func (m Message) Foreign(rest json.RawMessage) *core.Foreign {
	switch {
	case rest != nil && m.unknown != nil:
		return &core.Foreign{Dialect: Dialect, JSON: overlay(m.unknown, object("payload", rest))}
	case rest != nil:
		return &core.Foreign{Dialect: Dialect, JSON: object("payload", rest)}
	case m.unknown != nil:
		return &core.Foreign{Dialect: Dialect, JSON: m.unknown}
	}
	return nil
}

// MembersOf returns the unknown members that a peer of the same dialect sent, as members
// of a message.
func MembersOf(f *core.Foreign) Members {
	var ms Members
	if f == nil || f.Dialect != Dialect || json.Unmarshal(f.JSON, &ms) != nil {
		return nil
	}
	return ms
}

// Restore adds to a message the unknown members that a peer of the same dialect sent. It
// replaces no member of the message.
func Restore(frame []byte, f *core.Foreign) []byte {
	if MembersOf(f) == nil {
		return frame
	}
	return overlay(frame, f.JSON)
}

// object returns an object with one member, nil if value is no JSON.
func object(name string, value json.RawMessage) json.RawMessage {
	raw, _ := strictjson.Marshal(Members{name: value})
	return raw
}

// overlay adds to an object the members that only other has, also within objects that
// both have.
func overlay(own, other json.RawMessage) json.RawMessage {
	var a, b Members
	if json.Unmarshal(own, &a) != nil || a == nil || json.Unmarshal(other, &b) != nil {
		return own
	}
	for name, theirs := range b {
		if ours, both := a[name]; both {
			a[name] = overlay(ours, theirs)
		} else {
			a[name] = theirs
		}
	}
	sum, err := strictjson.Marshal(a)
	if err != nil {
		return own
	}
	return sum
}
