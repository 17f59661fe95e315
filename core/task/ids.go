package task

import (
	"encoding/binary"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// MaxOwner is the largest index of a hub in the ids of its tasks.
const MaxOwner = 1<<ownerBits - 1

// The index of the hub that owns a task is the 10 bits after the variant of its UUID. The 64
// bits before are the time and the version.
const (
	ownerBits  = 10
	ownerShift = 64 - 2 - ownerBits
	ownerMask  = uint64(MaxOwner) << ownerShift
)

// OwnerOf returns the index of the hub that made the id for a task of its own. An id from before
// its hub was in a cluster has any index.
func OwnerOf(id core.TaskID) int {
	b := id.Bytes()
	return int(binary.BigEndian.Uint64(b[8:]) & ownerMask >> ownerShift)
}

// nextID returns the id of a new task of the hub with an index. It is greater than all before,
// over restarts too and whatever the clock does: the tasks of a thread are in the order of their
// ids. Callers hold mu.
func (s *Store) nextID(owner int) core.TaskID {
	b := core.TaskID(core.NewID()).Bytes()
	low := binary.BigEndian.Uint64(b[8:])&^ownerMask | uint64(owner)<<ownerShift
	binary.BigEndian.PutUint64(b[8:], low)
	id := core.TaskIDOf(b)
	if id <= s.newest {
		newest := s.newest.Bytes()
		time := following(binary.BigEndian.Uint64(newest[:8]))
		binary.BigEndian.PutUint64(b[:8], time)
		id = core.TaskIDOf(b)
	}
	s.newest = id
	return id
}

// following returns the next time in the first 64 bits of a UUID of version 7: 48 bits of
// milliseconds and, after the version, 12 bits of their fraction.
func following(time uint64) uint64 {
	const version, fraction = 0xf000, 0x0fff
	if time&fraction < fraction {
		return time + 1
	}
	return (time&^(version|fraction) + version + fraction + 1) | time&version
}

// noteID notes the id of a task from before the start. Callers hold mu.
func (s *Store) noteID(id core.TaskID) {
	if IsID(string(id)) {
		s.newest = max(s.newest, id)
	}
}

// Learn notes that another hub has a task. The ids of tasks that are opened here from now on are
// greater.
func (s *Store) Learn(id core.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteID(id)
	if _, _, found := s.catalog.find(id); !found {
		s.catalog.add(known{id: id})
	}
}

// IsID reports whether the text has the form of a task id.
func IsID(text string) bool { return len(text) == 36 && strings.Count(text, "-") == 4 }
