package parallax

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
)

// shape names the members of an object that the codec gives a meaning to; a
// member with a shape of its own is looked into.
type shape map[string]shape

// strip returns the object without the members that s names, nil if nothing is
// left. Anything but an object is left as it is.
func (s shape) strip(object json.RawMessage) json.RawMessage {
	var ms members
	if json.Unmarshal(object, &ms) != nil || ms == nil {
		return object
	}
	for name, inner := range s {
		value, there := ms[name]
		switch {
		case !there:
		case inner == nil:
			delete(ms, name)
		default:
			if left := inner.strip(value); left == nil || string(left) == "null" {
				delete(ms, name)
			} else {
				ms[name] = left
			}
		}
	}
	if len(ms) == 0 {
		return nil
	}
	left, err := marshal(ms)
	if err != nil {
		return nil
	}
	return left
}

// foreign keeps what strip leaves of a payload for a peer of the same dialect
// (promise P11).
func (s shape) foreign(payload json.RawMessage) *core.Foreign {
	left := s.strip(payload)
	if left == nil {
		return nil
	}
	return &core.Foreign{Dialect: Dialect, JSON: left}
}

// restore adds to a payload the members that a peer of the same dialect sent
// beside what has a meaning. What the payload has itself stands.
func restore(payload any, f *core.Foreign) any {
	if f == nil || f.Dialect != Dialect || len(f.JSON) == 0 {
		return payload
	}
	own, err := marshal(payload)
	if err != nil {
		return payload
	}
	return overlay(own, f.JSON)
}

// overlay adds to an object what only the other has, within objects that both
// have too.
func overlay(object, other json.RawMessage) json.RawMessage {
	var a, b members
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
	sum, err := marshal(a)
	if err != nil {
		return object
	}
	return sum
}
