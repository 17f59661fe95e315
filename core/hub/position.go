package hub

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// position is how far a feed has read: all tasks up to newest, of which the open ones up to their
// cursors and the others to the end. Later tasks were not begun. Ids of tasks grow, over restarts
// too, so a position means the same after one. Its text grows in place: it is copied with every
// event.
type position struct {
	newest core.TaskID
	open   []openTask // by id
	text   []byte     // the head, and a part for each open task
}

// openTask is a task that was begun and not read to the end.
type openTask struct {
	id   core.TaskID
	last byte // the last byte of its UUID
}

// The text form is base64 without padding, in parts of whole bytes: a head of the version and
// newest, and for each open task its id, its epoch and its sequence number.
const (
	positionVersion = 1
	headBytes       = 18
	headChars       = headBytes / 3 * 4
	openBytes       = 21
	openChars       = openBytes / 3 * 4
	// mostOpen is how many open tasks a text has at most: proxies take 4 KB of headers. If there are
	// more, the newest of those that it has counts as the newest of all, so that later tasks are read
	// again from their beginning.
	mostOpen = 100
)

// newPosition returns the position before the first task.
func newPosition() position {
	p := position{text: make([]byte, headChars)}
	p.raise("")
	return p
}

// raise sets newest.
func (p *position) raise(id core.TaskID) {
	p.newest = id
	encodeHead(p.text, id)
}

func encodeHead(text []byte, newest core.TaskID) {
	head := [headBytes]byte{positionVersion}
	u := newest.Bytes()
	copy(head[1:], u[:])
	base64.RawURLEncoding.Encode(text, head[:])
}

// find returns the index at which an open task is, or would be.
func (p *position) find(id core.TaskID) (int, bool) {
	if n := len(p.open); n > 0 && p.open[n-1].id < id {
		return n, false
	}
	return slices.BinarySearchFunc(p.open, id, func(o openTask, id core.TaskID) int { return cmp.Compare(o.id, id) })
}

// set notes how far a task was read. One after newest becomes that.
func (p *position) set(id core.TaskID, c core.Cursor) {
	if id > p.newest {
		p.raise(id)
	}
	i, known := p.find(id)
	at := headChars + i*openChars
	if !known {
		u := id.Bytes() // the hub makes all ids
		p.open = slices.Insert(p.open, i, openTask{id, u[15]})
		var part [openChars]byte
		base64.RawURLEncoding.Encode(part[:], u[:15])
		p.text = slices.Insert(p.text, at, part[:]...)
	}
	var rest [openBytes - 15]byte
	rest[0], rest[1] = p.open[i].last, byte(min(c.Epoch, math.MaxUint8))
	binary.BigEndian.PutUint32(rest[2:], uint32(min(c.Seq, math.MaxUint32)))
	base64.RawURLEncoding.Encode(p.text[at+20:], rest[:])
}

// cursor returns how far an open task was read, by its index.
func (p *position) cursor(i int) core.Cursor {
	var rest [openBytes - 15]byte
	at := headChars + i*openChars + 20
	_, _ = base64.RawURLEncoding.Decode(rest[:], p.text[at:at+openChars-20]) // set wrote it
	return core.Cursor{Epoch: uint32(rest[1]), Seq: uint64(binary.BigEndian.Uint32(rest[2:]))}
}

// end notes that a task was read to the end.
func (p *position) end(id core.TaskID) {
	if i, known := p.find(id); known {
		at := headChars + i*openChars
		p.open, p.text = slices.Delete(p.open, i, i+1), slices.Delete(p.text, at, at+openChars)
	}
}

// resumed is an open task of a position.
type resumed struct {
	task core.TaskID
	from core.Cursor
}

// parsePosition reads the text form, and returns the open tasks with their cursors. It returns an
// invalid Fault for anything else.
func parsePosition(text string) (position, []resumed, error) {
	p := newPosition()
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < headBytes || (len(raw)-headBytes)%openBytes != 0 || raw[0] != positionVersion || raw[headBytes-1] != 0 {
		return p, nil, badPosition()
	}
	open := (len(raw) - headBytes) / openBytes
	p.raise(core.TaskIDOf([16]byte(raw[1:])))
	var all []resumed
	for i := range open {
		part := raw[headBytes+i*openBytes:][:openBytes]
		r := resumed{core.TaskIDOf([16]byte(part)), core.Cursor{Epoch: uint32(part[16]), Seq: uint64(binary.BigEndian.Uint32(part[17:]))}}
		if len(all) > 0 && r.task <= all[len(all)-1].task || r.task == "" || r.task > p.newest || open > mostOpen {
			return newPosition(), nil, badPosition()
		}
		p.set(r.task, r.from)
		all = append(all, r)
	}
	return p, all, nil
}

func badPosition() error {
	return core.NewFault(core.CodeInvalid, "the position is not one of this stream: send the id of the last event, or none to begin now")
}

// append appends the text form.
func (p *position) append(text []byte) []byte {
	if len(p.open) <= mostOpen {
		return append(text, p.text...)
	}
	at := len(text)
	text = append(text, p.text[:headChars+mostOpen*openChars]...)
	encodeHead(text[at:], p.open[mostOpen-1].id)
	return text
}
