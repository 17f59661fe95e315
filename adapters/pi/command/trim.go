package command

import (
	"bytes"
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
// the memory of the frame and of one list: those that are kept are copied.
func (x *Execution) keepFields(names ...string) {
	names = append(names, "id", "type")
	kept := make(members, 0, len(names))
	x.size = 0
	for _, m := range x.Fields {
		if slices.Contains(names, string(m.Key)) {
			kept = append(kept, member{bytes.Clone(m.Key), strictjson.ParseValid(m.Value.Clone())})
			x.size += len(m.Value.Raw())
		}
	}
	x.Fields = kept
}
