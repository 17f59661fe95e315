package wire

import "github.com/dragoman-hub/dragoman/core"

// Beside keeps what an item of a stream says beside an event, for a peer of the same dialect
// (promise P11): the item without the ids of task and context, and without the content that
// the event tells, such as the text of a part, but with the names, metadata and unknown
// members around it. [BesideOf] reads it.
func Beside(r StreamResponse) *core.Foreign {
	return &core.Foreign{Dialect: Dialect, JSON: r.AppendJSON(nil)}
}

// BesideOf returns what a peer of the same dialect said beside an event, and whether it said
// anything. What is missing in it is not checked.
func BesideOf(f *core.Foreign) (r StreamResponse, said bool) {
	if f == nil || f.Dialect != Dialect {
		return r, false
	}
	v, err := Parse(f.JSON)
	if err != nil || streamObject.read(&r, v) != nil {
		return StreamResponse{}, false
	}
	return r, true
}
