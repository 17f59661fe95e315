package command

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// KeepOnly frees the memory of a command in flight, except for the fields that its
// response needs and those named.
func (x *Execution) KeepOnly(names ...string) {
	x.engine.inFlightBytes -= x.size
	x.keepFields(names...)
	x.engine.inFlightBytes += x.size
}

// keepFields is KeepOnly for a command that does not count as in flight. All fields share
// the memory of the frame, so those that are kept are copied.
func (x *Execution) keepFields(names ...string) {
	names = append(names, "id", "type")
	text := []byte{'{'}
	x.size = 0
	for key, v := range x.object.Members() {
		if !slices.Contains(names, string(key)) {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(strictjson.AppendString(text, string(key)), ':')
		text = append(text, v.Raw()...)
		x.size += len(v.Raw())
	}
	x.object = strictjson.ParseValid(append(text, '}'))
}
