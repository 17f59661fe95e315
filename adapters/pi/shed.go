package pi

import (
	"bytes"
	"encoding/json"
)

// shed lets go of what a command needs no more that is admitted and goes on: all but what
// its response says, and what is named. Server.mu is held.
func (s *Server) shed(x *execution, names ...string) {
	s.flyingBytes -= x.size
	x.shed(names...)
	s.flyingBytes += x.size
}

// shed is that of a command which does not count as in flight. The fields share the
// memory of their frame, however small each is.
func (x *execution) shed(names ...string) {
	x.size = 0
	left := map[string]json.RawMessage{}
	for _, name := range append(names, "id", "type") {
		if raw, ok := x.fields[name]; ok {
			left[name] = bytes.Clone(raw)
			x.size += len(raw)
		}
	}
	x.fields = left
}
