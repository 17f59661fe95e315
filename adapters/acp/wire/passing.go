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

// PartOf returns the foreign frame of an event that is one of several from one envelope:
// the end of the task, which is the last of them, keeps the envelope itself.
func PartOf(raw []byte) []byte {
	return SetMembers([]byte("{}"), Field{"kind", ValueOf(raw, "kind")})
}

// IsPart reports whether raw was made by PartOf: it has no id, as envelopes do.
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
	return SetMembers(raw, Field{"payload", SetMembers(ValueOf(raw, "payload"), Field{key, value})})
}

// HasFiles reports whether the payload of an envelope contains files.
func HasFiles(raw []byte) bool {
	_, files := splitFiles(strictjson.ParseValid(raw).Get("payload", memberData))
	return len(files) > 0
}
