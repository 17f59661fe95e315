package task

import (
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// nextID returns the id of a new task, which is greater than all before, over restarts too
// and whatever the clock does: the tasks of a thread are in the order of their ids. Callers
// hold mu.
func (s *Store) nextID() core.TaskID {
	id := core.TaskID(core.NewID())
	if id <= s.newest {
		id = following(s.newest)
	}
	s.newest = id
	return id
}

// noteID notes the id of a task from before the start. Callers hold mu.
func (s *Store) noteID(id core.TaskID) {
	if IsID(string(id)) {
		s.newest = max(s.newest, id)
	}
}

// IsID reports whether the text has the form of a task id.
func IsID(text string) bool { return len(text) == 36 && strings.Count(text, "-") == 4 }

// following returns the least UUID of version 7 that is greater than the id.
func following(id core.TaskID) core.TaskID {
	const version, variant = 14, 19 // their offsets in the text
	b := []byte(id)
	for i := len(b) - 1; i >= 0; i-- {
		first, last := byte('0'), byte('f')
		switch {
		case b[i] == '-' || i == version:
			continue
		case i == variant:
			first, last = '8', 'b'
		}
		if b[i] < last {
			if b[i]++; b[i] == '9'+1 {
				b[i] = 'a'
			}
			break
		}
		b[i] = first
	}
	return core.TaskID(b)
}
