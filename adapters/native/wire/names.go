package wire

import (
	"bytes"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// namesWithin is how much of a text Names reads.
const namesWithin = 1 << 10

// Names returns the id and the task in the beginning of a frame that cannot be read, so that
// the error about it can name them. It returns "" for what it does not find.
func Names(text []byte) (id string, task core.TaskID) {
	text = text[:min(len(text), namesWithin)]
	return textAfter(text, `"id"`), core.TaskID(textAfter(text, `"task"`))
}

// textAfter returns the text that is the value of a key.
func textAfter(text []byte, key string) (s string) {
	_, rest, found := bytes.Cut(text, []byte(key))
	if !found {
		return ""
	}
	rest, found = bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":"))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if !found || len(rest) == 0 || rest[0] != '"' {
		return ""
	}
	if end := bytes.IndexByte(rest[1:], '"'); end >= 0 && end <= core.MaxIDBytes {
		_ = strictjson.Decode(rest[:end+2], strictjson.Limits{}, &s) // stays "" if it is no text
	}
	return s
}
