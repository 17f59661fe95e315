package command

import (
	"bytes"
	"slices"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// KeepOnly lets go of what a command in flight needs no more: all of its fields but those
// that its response says, and those named.
func (x *Execution) KeepOnly(names ...string) {
	x.engine.inFlightBytes -= x.size
	x.keepFields(names...)
	x.engine.inFlightBytes += x.size
}

// drop is KeepOnly of a command that does not count as in flight. The fields share the
// memory of their frame, and of the list that may have had many more: those that stay,
// however small each is, get some of their own.
func (x *Execution) keepFields(names ...string) {
	names = append(names, "id", "type")
	left := make(members, 0, len(names))
	x.size = 0
	for _, m := range x.Fields {
		if slices.Contains(names, string(m.Key)) {
			left = append(left, member{bytes.Clone(m.Key), strictjson.ParseValid(m.Value.Clone())})
			x.size += len(m.Value.Raw())
		}
	}
	x.Fields = left
}
