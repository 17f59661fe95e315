package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FrameOf returns the envelope that an ACP agent sent for an event, or nil.
func FrameOf(e core.Event) []byte {
	if e.Foreign == nil || e.Foreign.Dialect != Dialect || !IsObject(e.Foreign.JSON) {
		return nil
	}
	return e.Foreign.JSON
}

// PartOf returns the foreign frame of an event that is one of several from one envelope. The
// last of them, the end of the task, keeps the envelope itself.
func PartOf(raw []byte) []byte {
	return SetMembers([]byte("{}"), Field{Key: "kind", Value: ValueOf(raw, "kind")})
}

// IsPart reports whether raw is from PartOf: unlike an envelope it has no id.
func IsPart(raw []byte) bool { return raw != nil && ValueOf(raw, "id") == nil }

// KindOf returns the kind of an envelope that was decoded or encoded before.
func KindOf(raw []byte) Kind { return Kind(TextOf(raw, "kind")) }

// TextOf returns a text member of an object, or "".
func TextOf(object []byte, key string) string {
	text, _ := strictjson.ParseValid(object).Get(key).Text()
	return text
}

// ValueOf returns the value of a member of an object, or nil.
func ValueOf(object []byte, key string) []byte { return strictjson.ParseValid(object).Get(key).Raw() }

// SetInPayload returns the envelope with a member of its payload set.
func SetInPayload(raw []byte, key string, value json.RawMessage) []byte {
	return SetMembers(raw, Field{Key: "payload", Value: SetMembers(ValueOf(raw, "payload"), Field{Key: key, Value: value})})
}

// Field is a member to be written.
type Field = strictjson.Field

// SetMembers returns the object with the fields set: in place of the values under their keys,
// or at the end. All other bytes stay.
func SetMembers(object []byte, fields ...Field) []byte {
	return strictjson.ParseValid(object).Set(fields...)
}

// HasFiles reports whether the payload of an envelope contains files.
func HasFiles(raw []byte) bool {
	_, files := splitFiles(strictjson.ParseValid(raw).Get("payload", memberData))
	return len(files) > 0
}
