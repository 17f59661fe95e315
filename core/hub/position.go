package hub

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"github.com/dragoman-hub/dragoman/core"
)

// position is how far a feed has read: all tasks up to newest, of which the open ones up to their
// cursors and the others to the end. Later tasks were not begun. Ids of tasks grow, over restarts
// too, so a position means the same after one. Its text grows in place: it is copied with every
// event.
type position struct {
	newest core.TaskID
	open   []openTask
	at     map[core.TaskID]int // the index in open
	text   []byte              // the head, and a part for each open task
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
	// mostOpen is how many open tasks a text has at most: more do not fit into the head of a
	// request.
	mostOpen = 1000
)

// newPosition returns the position before the first task.
func newPosition() position {
	p := position{at: map[core.TaskID]int{}, text: make([]byte, headChars)}
	p.raise("")
	return p
}

// raise sets newest.
func (p *position) raise(id core.TaskID) {
	p.newest = id
	head := [headBytes]byte{positionVersion}
	u := id.Bytes()
	copy(head[1:], u[:])
	base64.RawURLEncoding.Encode(p.text, head[:])
}

// set notes how far a task was read. One after newest becomes that.
func (p *position) set(id core.TaskID, c core.Cursor) {
	if id > p.newest {
		p.raise(id)
	}
	i, known := p.at[id]
	if !known {
		i = len(p.open)
		p.at[id] = i
		u := id.Bytes() // the hub makes all ids
		p.open = append(p.open, openTask{id, u[15]})
		p.text = append(p.text, make([]byte, openChars)...)
		base64.RawURLEncoding.Encode(p.text[headChars+i*openChars:], u[:15])
	}
	var rest [openBytes - 15]byte
	rest[0], rest[1] = p.open[i].last, byte(min(c.Epoch, math.MaxUint8))
	binary.BigEndian.PutUint32(rest[2:], uint32(min(c.Seq, math.MaxUint32)))
	base64.RawURLEncoding.Encode(p.text[headChars+i*openChars+20:], rest[:])
}

// cursor returns how far an open task was read.
func (p *position) cursor(id core.TaskID) core.Cursor {
	var rest [openBytes - 15]byte
	at := headChars + p.at[id]*openChars + 20
	_, _ = base64.RawURLEncoding.Decode(rest[:], p.text[at:at+openChars-20]) // set wrote it
	return core.Cursor{Epoch: uint32(rest[1]), Seq: uint64(binary.BigEndian.Uint32(rest[2:]))}
}

// end notes that a task was read to the end.
func (p *position) end(id core.TaskID) {
	i, known := p.at[id]
	if !known {
		return
	}
	last := len(p.open) - 1
	at := func(i int) []byte { return p.text[headChars+i*openChars : headChars+(i+1)*openChars] }
	copy(at(i), at(last))
	p.open[i] = p.open[last]
	p.at[p.open[i].id] = i
	delete(p.at, id)
	p.open, p.text = p.open[:last], p.text[:headChars+last*openChars]
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
		if _, twice := p.at[r.task]; twice || r.task == "" || r.task > p.newest || open > mostOpen {
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

// append appends the text form; nothing if it would be too long.
func (p *position) append(text []byte) []byte {
	if len(p.open) > mostOpen {
		return text
	}
	return append(text, p.text...)
}
