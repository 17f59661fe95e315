package task

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// Line is the tasks that one hub of a cluster opens for another one, or itself, to own. The other
// hubs are told of them in the order of their ids, which is not so for tasks of several lines.
type Line uint32

// MaxLine is the greatest Line.
const MaxLine = 1<<(2*ownerBits) - 1

// LineOf returns the line of a task, by its id, and its place there, which rises.
func LineOf(id core.TaskID) (l Line, place uint64) {
	b := id.Bytes()
	return Line(binary.BigEndian.Uint64(b[8:]) >> makerShift & MaxLine), binary.BigEndian.Uint64(b[:8])
}

// Owner returns the index of the hub that owns its tasks.
func (l Line) Owner() int { return int(l >> ownerBits) }

// Maker returns the index of the hub that opens its tasks.
func (l Line) Maker() int { return int(l & MaxOwner) }

// Learn notes tasks of other hubs. The ids of tasks that are opened here from now on are greater.
func (s *Store) Learn(ids ...core.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unknown []known
	for _, id := range ids {
		if !IsID(string(id)) {
			continue
		}
		s.noteID(id)
		if _, _, found := s.catalog.find(id); !found {
			unknown = append(unknown, known{id: id})
		}
	}
	s.catalog.addAll(unknown)
	s.catalog.bound(s.tasks)
}

// noteLine notes the newest task of its line. Callers hold mu.
func (s *Store) noteLine(id core.TaskID) {
	if s.lines != nil {
		l, place := LineOf(id)
		s.lines[l] = max(s.lines[l], place)
	}
}

// Lines returns the place of the newest task of each line that is known here; nil for a hub alone.
func (s *Store) Lines() map[Line]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.lines)
}

// NoteLines notes places that another hub has told.
func (s *Store) NoteLines(told map[Line]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, place := range told {
		if s.lines != nil && l <= MaxLine {
			s.lines[l] = max(s.lines[l], place)
			s.newest = max(s.newest, firstAt(place)) // which is no task, and in no line
		}
	}
}

// firstAt returns the least id at a place.
func firstAt(place uint64) core.TaskID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], place)
	return core.TaskIDOf(b)
}

// LastAt returns the greatest id at a place.
func LastAt(place uint64) core.TaskID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], place)
	binary.BigEndian.PutUint64(b[8:], ^uint64(0))
	return core.TaskIDOf(b)
}

// At returns the task at a place of a line, if the store can list it; else "".
func (s *Store) At(l Line, place uint64) core.TaskID {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, i, _ := s.catalog.find(firstAt(place))
	for ; i < len(all) && all[i].id <= LastAt(place); i++ {
		if one, _ := LineOf(all[i].id); one == l {
			return all[i].id
		}
	}
	return ""
}

// Unread returns the ids of at most n tasks that come after one and that were not read, oldest
// first, in memory and in the journal.
func (s *Store) Unread(after core.TaskID, wasRead func(core.TaskID) bool, n int) (out []core.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, i, found := s.catalog.find(after)
	if found {
		i++
	}
	for ; i < len(all) && len(out) < n; i++ {
		if id := all[i].id; IsID(string(id)) && !wasRead(id) { // else it is not of this hub
			out = append(out, id)
		}
	}
	return out
}

// addAll adds tasks that are not there, of nobody known.
func (c *catalog) addAll(more []known) {
	if len(more) == 1 {
		c.add("", more[0])
		return
	}
	for _, k := range more {
		k.of = c.shares.Add("")
		c.tasks.Push(k)
		c.share.Add(knownBytes)
	}
	slices.SortFunc(c.tasks.Items(), func(a, b known) int { return cmp.Compare(a.id, b.id) })
}
