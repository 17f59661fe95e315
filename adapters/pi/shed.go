package pi

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// shed lets go of what a command needs no more that is admitted and goes on: all but what
// its response says, and what is named. Server.mu is held.
func (s *Server) shed(x *execution, names ...string) {
	s.flyingBytes -= x.size
	x.shed(names...)
	s.flyingBytes += x.size
}

// shed is that of a command which does not count as in flight. The fields share the
// memory of their frame, and of the list that may have had many more: those that stay,
// however small each is, get some of their own.
func (x *execution) shed(names ...string) {
	names = append(names, "id", "type")
	left, room := make(members, 0, len(names)), 0
	x.size = 0
	for _, m := range x.fields {
		if slices.Contains(names, string(m.Key)) {
			left = append(left, m)
			x.size += len(m.Value)
			room += len(m.Key) + len(m.Value)
		}
	}
	own := make([]byte, 0, room)
	for i, m := range left {
		key, value := len(own), len(own)+len(m.Key)
		own = append(append(own, m.Key...), m.Value...)
		left[i] = strictjson.Member{Key: own[key:value:value], Value: own[value:len(own):len(own)]}
	}
	x.fields = left
}
