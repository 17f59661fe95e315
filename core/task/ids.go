package task

import (
	"encoding/binary"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// MaxOwner is the largest index of a hub in the ids of its tasks.
const MaxOwner = 1<<ownerBits - 1

// The index of the hub that owns a task is the 10 bits after the variant of its UUID, and that of the
// hub that opened it the 10 bits after those. The 64 bits before are the time and the version.
const (
	ownerBits  = 10
	ownerShift = 64 - 2 - ownerBits
	makerShift = ownerShift - ownerBits
	lineMask   = uint64(MaxLine) << makerShift
)

// OwnerOf returns the index of the hub that made the id for a task of its own. An id from before
// its hub was in a cluster has any index.
func OwnerOf(id core.TaskID) int {
	b := id.Bytes()
	return int(binary.BigEndian.Uint64(b[8:]) >> ownerShift & MaxOwner)
}

// nextID returns the id of a new task of the hub with an index. It is greater than all before,
// over restarts too and whatever the clock does: the tasks of a thread are in the order of their
// ids. Callers hold mu.
func (s *Store) nextID(owner int) core.TaskID {
	b := core.TaskID(core.NewID()).Bytes()
	low := binary.BigEndian.Uint64(b[8:])&^lineMask | uint64(owner)<<ownerShift | uint64(s.limits.Owner)<<makerShift
	binary.BigEndian.PutUint64(b[8:], low)
	newest := s.newest.Bytes()
	if before := binary.BigEndian.Uint64(newest[:8]); binary.BigEndian.Uint64(b[:8]) <= before {
		binary.BigEndian.PutUint64(b[:8], following(before))
	}
	s.newest = core.TaskIDOf(b)
	return s.newest
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
		s.noteLine(id)
	}
}

// IsID reports whether the text has the form of a task id.
func IsID(text string) bool { return len(text) == 36 && strings.Count(text, "-") == 4 }
