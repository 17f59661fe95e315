package hub

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// position is how far a feed has read: all tasks up to newest, of which the open ones up to their
// cursors and the others to the end. Later tasks were not begun. Ids of tasks grow, over restarts
// too, so a position means the same after one. In a cluster they grow in each line, and newest
// counts for the lines that are not there: so a position means the same at each hub. Its text grows
// in place: it is copied with every event.
type position struct {
	newest  core.TaskID
	cluster bool // each line counts for itself
	lines   []lineRead
	open    []openTask // by id
	text    []byte     // the head, and a part for each line and each open task
}

// lineRead is how far a line was read. Lines are in their order.
type lineRead struct {
	line  task.Line
	place uint64
}

// openTask is a task that was begun and not read to the end.
type openTask struct {
	id   core.TaskID
	last byte // the last byte of its UUID
}

// The text form is base64 without padding, in parts of whole bytes: a head of the version, newest and
// the number of lines, each line with its place, and for each open task its id, its epoch and its
// sequence number.
const (
	positionVersion = 1
	headBytes       = 18
	headChars       = headBytes / 3 * 4
	lineBytes       = 12
	lineChars       = lineBytes / 3 * 4
	openBytes       = 21
	openChars       = openBytes / 3 * 4
	// mostOpen is how many open tasks a text has at most: proxies take 4 KB of headers. If there are
	// more, the newest of those that it has counts as the newest of all, so that later tasks are read
	// again from their beginning.
	mostOpen = 100
	// mostLines is how many lines a text has at most, in the room of open tasks: those of seven hubs.
	// If there are more, newest goes back to the oldest, whose tasks may be read again.
	mostLines = 49
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
	p.encodeHead(p.text, id)
}

func (p *position) encodeHead(text []byte, newest core.TaskID) {
	head := [headBytes]byte{positionVersion}
	u := newest.Bytes()
	copy(head[1:], u[:])
	head[headBytes-1] = byte(len(p.lines))
	base64.RawURLEncoding.Encode(text, head[:])
}

// head returns where the open tasks begin in the text.
func (p *position) head() int { return headChars + len(p.lines)*lineChars }

// hasRead reports whether a task was begun.
func (p *position) hasRead(id core.TaskID) bool {
	if len(p.lines) > 0 {
		l, place := task.LineOf(id)
		if i, known := p.findLine(l); known {
			return place <= p.lines[i].place
		}
	}
	return id <= p.newest
}

// after returns what a gap names if a hub does not know what came after the position; "" before the
// first task. A position that began before the first task of a cluster has places alone: then it is the
// greatest id at the first of them.
func (p *position) after() core.TaskID {
	if p.newest != "" || len(p.lines) == 0 {
		return p.newest
	}
	least := slices.MinFunc(p.lines, func(a, b lineRead) int { return cmp.Compare(a.place, b.place) })
	return task.LastAt(least.place)
}

// floor returns a task up to which all were begun.
func (p *position) floor() core.TaskID {
	least := p.newest
	for _, l := range p.lines {
		least = min(least, task.LastAt(l.place))
	}
	return least
}

// isListed reports whether a hub knows the newest tasks that were begun, and those after them.
func (p *position) isListed(s *task.Store) bool {
	if len(p.lines) == 0 {
		return s.Lists(p.newest)
	}
	return len(p.latest(s)) == len(p.lines)
}

// latest returns the newest task that was begun of each line, of those that a hub knows with all after them.
func (p *position) latest(s *task.Store) (all []core.TaskID) {
	lost := s.Lost()
	for l := range lost {
		if _, begun := p.findLine(l); !begun {
			return nil
		}
	}
	for _, l := range p.lines {
		if id := s.At(l.line, l.place); id != "" && lost[l.line] <= l.place {
			all = append(all, id)
		}
	}
	return all
}

func (p *position) findLine(l task.Line) (int, bool) {
	return slices.BinarySearchFunc(p.lines, l, func(r lineRead, l task.Line) int { return cmp.Compare(r.line, l) })
}

// begin notes that a task was begun, and all before it in its line.
func (p *position) begin(id core.TaskID) {
	switch {
	case p.cluster || len(p.lines) > 0:
		p.setLine(task.LineOf(id))
	case id > p.newest:
		p.raise(id)
	}
}

// setLine sets how far a line was read at least.
func (p *position) setLine(l task.Line, place uint64) {
	i, known := p.findLine(l)
	at := headChars + i*lineChars
	switch {
	case known && p.lines[i].place >= place:
		return
	case !known && len(p.lines) == mostLines:
		p.dropLine()
		p.setLine(l, place)
		return
	case !known:
		p.lines = slices.Insert(p.lines, i, lineRead{line: l})
		p.text = slices.Insert(p.text, at, make([]byte, lineChars)...)
		p.raise(p.newest)
	}
	p.lines[i].place = place
	encodeLine(p.text[at:], p.lines[i])
}

func encodeLine(text []byte, l lineRead) {
	var part [lineBytes]byte
	binary.BigEndian.PutUint32(part[:], uint32(l.line))
	binary.BigEndian.PutUint64(part[4:], l.place)
	base64.RawURLEncoding.Encode(text, part[:])
}

// dropLine drops the line that was read least far, for which newest counts from now on.
func (p *position) dropLine() {
	least := 0
	for i, l := range p.lines {
		if l.place < p.lines[least].place {
			least = i
		}
	}
	id, at := task.LastAt(p.lines[least].place), headChars+least*lineChars
	p.lines, p.text = slices.Delete(p.lines, least, least+1), slices.Delete(p.text, at, at+lineChars)
	p.raise(min(p.newest, id))
}

// find returns the index at which an open task is, or would be.
func (p *position) find(id core.TaskID) (int, bool) {
	if n := len(p.open); n > 0 && p.open[n-1].id < id {
		return n, false
	}
	return slices.BinarySearchFunc(p.open, id, func(o openTask, id core.TaskID) int { return cmp.Compare(o.id, id) })
}

// set notes how far a task was read, and that it was begun.
func (p *position) set(id core.TaskID, c core.Cursor) {
	p.begin(id)
	p.track(id, c)
}

// track notes how far a task was read.
func (p *position) track(id core.TaskID, c core.Cursor) {
	i, known := p.find(id)
	at := p.head() + i*openChars
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
	at := p.head() + i*openChars + 20
	_, _ = base64.RawURLEncoding.Decode(rest[:], p.text[at:at+openChars-20]) // set wrote it
	return core.Cursor{Epoch: uint32(rest[1]), Seq: uint64(binary.BigEndian.Uint32(rest[2:]))}
}

// end notes that a task was read to the end.
func (p *position) end(id core.TaskID) {
	if i, known := p.find(id); known {
		at := p.head() + i*openChars
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
	whole := len(text) == base64.RawURLEncoding.EncodedLen(len(raw)) // the decoder skips ends of lines
	if err != nil || !whole || len(text) > MaxPosition || len(raw) < headBytes || raw[0] != positionVersion || raw[headBytes-1] > mostLines {
		return p, nil, badPosition()
	}
	lines := int(raw[headBytes-1])
	rest := len(raw) - headBytes - lines*lineBytes
	if rest < 0 || rest%openBytes != 0 {
		return p, nil, badPosition()
	}
	p.raise(core.TaskIDOf([16]byte(raw[1:])))
	if !p.readLines(raw[headBytes:], lines) {
		return newPosition(), nil, badPosition()
	}
	all, ok := p.readOpen(raw[headBytes+lines*lineBytes:])
	if !ok {
		return newPosition(), nil, badPosition()
	}
	return p, all, nil
}

// readLines reads n lines, which are in order, and reports whether they can be.
func (p *position) readLines(raw []byte, n int) bool {
	for i := range n {
		part := raw[i*lineBytes:][:lineBytes]
		l, place := binary.BigEndian.Uint32(part), binary.BigEndian.Uint64(part[4:])
		if l > task.MaxLine || place == 0 || i > 0 && task.Line(l) <= p.lines[i-1].line {
			return false
		}
		p.setLine(task.Line(l), place)
	}
	return true
}

// readOpen reads the open tasks, which are in order and all that is left, and reports whether they can be.
func (p *position) readOpen(raw []byte) (all []resumed, ok bool) {
	open := len(raw) / openBytes
	for i := range open {
		part := raw[i*openBytes:][:openBytes]
		r := resumed{core.TaskIDOf([16]byte(part)), core.Cursor{Epoch: uint32(part[16]), Seq: uint64(binary.BigEndian.Uint32(part[17:]))}}
		if i > 0 && r.task <= all[i-1].task || r.task == "" || !p.hasRead(r.task) && len(p.lines) < mostLines || open > p.mostOpen() {
			return nil, false
		}
		p.track(r.task, r.from)
		all = append(all, r)
	}
	return all, true
}

func badPosition() error {
	return core.NewFault(core.CodeInvalid, "the position is not one of this stream: send the id of the last event, or none to begin now")
}

// append appends the text form.
func (p *position) append(text []byte) []byte {
	most := p.mostOpen()
	if len(p.open) <= most {
		return append(text, p.text...)
	}
	at, newest := len(text), p.open[most-1].id
	text = append(text, p.text[:p.head()+most*openChars]...)
	p.encodeHead(text[at:], min(newest, p.newest))
	_, place := task.LineOf(newest)
	for i, l := range p.lines {
		l.place = min(l.place, place)
		encodeLine(text[at+headChars+i*lineChars:], l)
	}
	return text
}

// mostOpen returns how many open tasks there is room for beside the lines.
func (p *position) mostOpen() int { return mostOpen - (len(p.lines)*lineChars+openChars-1)/openChars }
