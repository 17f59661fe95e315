package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The Foreign of an event of this dialect has one of three forms, so that an editor behind the
// hub gets what an agent behind the hub said (promise P11):
//
//   - an object with the member sessionUpdate: the whole update that the event comes from, to
//     be sent as it is;
//   - another object that is not empty: members that the event has no words for, to be added
//     to what the event becomes (a chunk, the result of the prompt, a permission request);
//   - the empty object: the event was told by the whole update of an event before it.

// Told is the Foreign of an event whose update is that of an event before it.
func Told() *core.Foreign { return &core.Foreign{Dialect: Dialect, JSON: json.RawMessage(`{}`)} }

// Verbatim is the Foreign of an event that is to be sent as the whole object.
func Verbatim(whole strictjson.Value) *core.Foreign {
	return &core.Foreign{Dialect: Dialect, JSON: whole.Clone()}
}

// Rest returns the members of a chunk without those that the event has: its kind, and the type
// and text or data of its content. It is nil if there are none.
func (u *Update) Rest() *core.Foreign { return rest(u.Whole, chunkShape) }

// Rest returns the members of params or of a result that the names do not cover, as the
// Foreign of an event; nil if there are none.
func Rest(object strictjson.Value, names ...string) *core.Foreign {
	s := shape{}
	for _, name := range names {
		s[name] = nil
	}
	return rest(object, s)
}

func rest(object strictjson.Value, s shape) *core.Foreign {
	if left := s.strip(object); left != nil {
		return &core.Foreign{Dialect: Dialect, JSON: left}
	}
	return nil
}

// OfForeign returns the Foreign of an event as it is to be used: whole is an update to be sent
// as it is, more has members to be added by [Restore], and told reports that nothing is to be
// sent. All are empty for an event of another dialect.
func OfForeign(f *core.Foreign) (whole, more json.RawMessage, told bool) {
	if f == nil || f.Dialect != Dialect {
		return nil, nil, false
	}
	v := strictjson.ParseValid(f.JSON)
	switch {
	case v.Kind() != strictjson.Object:
		return nil, nil, false
	case v.Len() == 0:
		return nil, nil, true
	case v.Get("sessionUpdate").Kind() == strictjson.String:
		return f.JSON, nil, false
	}
	return nil, f.JSON, false
}

// Restore adds to an object the members that only more has, also within objects that both
// have. It replaces nothing.
func Restore(own, more json.RawMessage) json.RawMessage {
	if len(more) == 0 {
		return own
	}
	return overlay(own, more)
}

// shape names the members of an object that an event has. A member with a shape of its own is
// an object with further members.
type shape map[string]shape

var chunkShape = shape{"sessionUpdate": nil, "content": {"type": nil, "text": nil, "data": nil, "resource": {"text": nil, "blob": nil}}}

// strip returns the object without the members that s names, nil if none remains.
func (s shape) strip(object strictjson.Value) json.RawMessage {
	if object.Kind() != strictjson.Object {
		return object.Clone()
	}
	var left []byte
	for key, value := range object.Members() {
		raw := value.Raw()
		if inner, known := s[string(key)]; known {
			if inner == nil || value.Kind() == strictjson.Null {
				continue
			}
			if raw = inner.strip(value); raw == nil {
				continue
			}
		}
		if left == nil {
			left = append(left, '{')
		} else {
			left = append(left, ',')
		}
		left = append(append(strictjson.AppendString(left, string(key)), ':'), raw...)
	}
	if left == nil {
		return nil
	}
	return append(left, '}')
}

// overlay adds to an object the members that only other has, also within objects that both
// have. Both are JSON that was read or written before.
func overlay(own, other json.RawMessage) json.RawMessage {
	a, b := strictjson.ParseValid(own), strictjson.ParseValid(other)
	if a.Kind() != strictjson.Object || b.Kind() != strictjson.Object {
		return own
	}
	var fields []strictjson.Field
	for key, theirs := range b.Members() {
		value := theirs.Raw()
		if ours := a.Get(string(key)); ours.Exists() {
			value = overlay(ours.Raw(), value)
		}
		fields = append(fields, strictjson.Field{Key: string(key), Value: value})
	}
	return a.Set(fields...)
}
