package acp

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
)

// ownFrame returns the envelope that an ACP agent sent for an event, or nil.
func ownFrame(e core.Event) []byte {
	if e.Foreign == nil || e.Foreign.Dialect != Dialect || !isObject(e.Foreign.JSON) {
		return nil
	}
	return e.Foreign.JSON
}

// partOf marks an event that an envelope tells of beside the end of the task, which
// has the envelope itself.
func partOf(raw []byte) []byte {
	return setMembers([]byte("{}"), field{"kind", valueOf(raw, "kind")})
}

// isPart reports whether raw is what partOf makes: envelopes have an id.
func isPart(raw []byte) bool { return raw != nil && valueOf(raw, "id") == nil }

// kindOf returns the kind of an envelope that was decoded or encoded before.
func kindOf(raw []byte) Kind { return Kind(textOf(raw, "kind")) }

// textOf returns a text member of an object, or "".
func textOf(object []byte, key string) string {
	var text string
	if value := valueOf(object, key); len(value) > 0 {
		_ = json.Unmarshal(value, &text) // anything but a text is none
	}
	return text
}

// valueOf returns the value of a member of an object, or nil.
func valueOf(object []byte, key string) []byte {
	for _, m := range members(object) {
		if m.key == key {
			return object[m.from:m.to]
		}
	}
	return nil
}

// withMember returns an envelope whose payload has the value in a member.
func withMember(raw []byte, key string, value json.RawMessage) []byte {
	return setMembers(raw, field{"payload", setMembers(valueOf(raw, "payload"), field{key, value})})
}

// ownFiles reports whether the payload of an envelope says files itself.
func ownFiles(raw []byte) bool {
	_, files := splitFiles(valueOf(valueOf(raw, "payload"), memberData))
	return len(files) > 0
}
