package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// AppendText is [strictjson.AppendText].
func AppendText(dst []byte, s string) []byte { return strictjson.AppendText(dst, s) }

// AppendString is [strictjson.AppendString].
func AppendString(dst []byte, s string) []byte { return strictjson.AppendString(dst, s) }

// Encode is [strictjson.Encode].
func Encode(v any) json.RawMessage { return strictjson.Encode(v) }

// IsString reports whether a JSON value is a string.
func IsString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }
