package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Field is a member to be written.
type Field struct {
	Key   string
	Value json.RawMessage
}

// SetMembers returns the object with the values of the fields in place of what it
// had under their keys, or behind everything else. All other bytes stay.
func SetMembers(object []byte, fields ...Field) []byte {
	members := make([]strictjson.Field, len(fields))
	for i, f := range fields {
		members[i] = strictjson.Field(f)
	}
	return strictjson.ParseValid(object).Set(members...)
}
