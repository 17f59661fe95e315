package nats

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// walk goes through a block that may be damaged.
type walk struct {
	block
	in     *inspection
	stream string
	newest bool   // no block stands behind it
	closed uint64 // the place of the last message as the index of the stream has it
	last   uint64 // the last place so far
	sound  int    // up to here it is known that no sound record begins
}

// through returns what stays of a block, which shares memory with text, and whether that
// is the block as it was.
func (w *walk) through(text []byte) (rest []byte, same bool, err error) {
	kept, same, last := 0, true, uint64(0)
	harmed := func() error {
		if !same {
			return nil
		}
		same = false
		return w.in.keep(w.path)
	}
	for at := 0; at < len(text); {
		size, f := w.look(text, at)
		if f == torn && w.last < w.closed {
			f = taken // it was whole when the store was closed
		}
		if f == mended || f == taken {
			if err := harmed(); err != nil {
				return nil, false, err
			}
			w.tell(f, text[at:at+size], at)
		}
		if f == torn {
			w.in.log.Warn("the last write to the journal was cut off, as by a loss of power, and is dropped", "file", w.path, "bytes", size)
		}
		switch {
		case f != taken:
			if kept != at {
				copy(text[kept:], text[at:at+size])
			}
			kept += size
		case w.newest && at+size == len(text):
			last = w.last + 1
		}
		at += size
	}
	if !w.newest {
		return text[:kept], same, nil
	}
	if w.last < w.closed {
		if err := harmed(); err != nil {
			return nil, false, err
		}
		last = w.closed
		w.in.log.Error("the end of the journal is lost: the index has more than there is", "file", w.path, "from", w.last+1, "to", w.closed, "copy", w.in.copies)
	}
	if last > 0 {
		return append(text[:kept:kept], w.erasure(last)...), false, nil // so that the place is not used again
	}
	return text[:kept], same, nil
}

// fate is what becomes of a record.
type fate int

const (
	sound  fate = iota
	mended      // it is as it was written once more
	taken       // it is damaged, and taken out
	torn        // it was never written whole; the server cuts it off
)

// look looks at the record at a place, mends it if it can, and returns how long it is.
func (w *walk) look(text []byte, at int) (size int, f fate) {
	rest := text[at:]
	r, ok := w.record(rest)
	switch {
	case ok && w.align(rest[:r.size]):
		f = mended
	case ok:
		f = sound
	default:
		w.seek(text, at)
		rest = text[at:w.sound]
		size := sizeOf(rest)
		switch {
		case size > 0 && size < len(rest) && (w.measure(rest[:size]) || w.flip(rest[:size])):
			rest = rest[:size]
		case w.measure(rest):
		case w.newest && w.sound == len(text) && cutOff(rest):
			return len(rest), torn
		case w.flip(rest):
		case size > 0 && size < len(rest):
			return size, taken // another may be damaged as well
		default:
			return len(rest), taken
		}
		r, f = w.must(rest), mended
	}
	w.last = max(w.last, r.place&^(erased|tombstone)) // of one that is gone as well: it was there
	return r.size, f
}

// must returns a record that is sound.
func (w *walk) must(text []byte) record {
	w.align(text)
	r, _ := w.record(text)
	return r
}

// seek looks for the first sound record behind a damaged one: sound is where it begins,
// or the end of the text.
func (w *walk) seek(text []byte, at int) {
	for w.sound = max(w.sound, at+1); w.sound < len(text); w.sound++ {
		rest := text[w.sound:]
		// This leaves out almost everything before a checksum is made.
		const mostPlace = 1 << 48
		if size := sizeOf(rest); size == 0 || size > len(rest) || binary.LittleEndian.Uint64(rest[4:])&^(erased|tombstone) > mostPlace {
			continue
		}
		if _, ok := w.record(rest); ok {
			return
		}
	}
}

// cutOff reports whether the end of the last block looks as a write does that did not
// come to its end: there is less of it than it says, or nothing but zeros where its end
// has to be.
func cutOff(text []byte) bool {
	end := text[max(0, len(text)-checksum):]
	return len(text) < leastRecord || int(binary.LittleEndian.Uint32(text)&^hasHeader) > len(text) || len(bytes.Trim(end, "\x00")) == 0
}

// measure sets the lengths of a record to what its content shows, and reports whether it
// is as it was written then: no checksum covers them.
func (w *walk) measure(text []byte) bool {
	if len(text) < leastRecord || len(text) > mostRecord {
		return false
	}
	before := bytes.Clone(text)
	said := binary.LittleEndian.Uint32(text)
	for _, length := range []uint32{uint32(len(text)) | said&hasHeader, uint32(len(text)) | ^said&hasHeader} {
		binary.LittleEndian.PutUint32(text, length)
		w.align(text)
		if _, ok := w.record(text); ok {
			return true
		}
		copy(text, before)
	}
	return false
}

// flip looks for the one bit of a record that is wrong, where only one is, and puts it
// right.
func (w *walk) flip(text []byte) bool {
	if sizeOf(text) != len(text) || !fits(text) {
		return false
	}
	end := len(text) - checksum
	sum := w.sum(text)
	want := [checksum]byte(text[end:])
	if bits.OnesCount64(binary.LittleEndian.Uint64(sum[:])^binary.LittleEndian.Uint64(want[:])) == 1 {
		copy(text[end:], sum[:])
		return true
	}
	for i := 4; i < end; i++ {
		if i == 20 {
			i = recordStart // over the length of the subject
			if i == end {
				break
			}
		}
		if time.Now().After(w.in.until) {
			return false
		}
		for bit := range 8 {
			text[i] ^= 1 << bit
			if w.sum(text) == want {
				return true
			}
			text[i] ^= 1 << bit
		}
	}
	return false
}

// fits reports whether the parts of a record have room in it.
func fits(text []byte) bool {
	need := int(binary.LittleEndian.Uint16(text[20:]))
	if text[3]&0x80 != 0 {
		need += 4
	}
	return need <= len(text)-leastRecord
}

// align sets the lengths of the subject and of the header of a record to what its content
// shows, and reports whether they were others. No checksum covers them.
func (w *walk) align(text []byte) (changed bool) {
	const longest = 1<<16 - 1
	rest := text[recordStart : len(text)-checksum]
	rest = rest[:min(len(rest), longest)]
	if text[3]&0x80 == 0 {
		n := subjectIn(w.stream, rest)
		return n >= 0 && put16(text[20:], n)
	}
	const first, last = "NATS/1.0\r\n", "\r\n\r\n"
	start := bytes.Index(rest, []byte(first))
	if start < 4 {
		return false
	}
	end := bytes.Index(rest[start:], []byte(last))
	if end < 0 {
		return false
	}
	changed = put16(text[20:], start-4)
	length := rest[start-4:]
	if n := uint32(end + len(last)); binary.LittleEndian.Uint32(length) != n {
		binary.LittleEndian.PutUint32(length, n)
		changed = true
	}
	return changed
}

// put16 writes a number, and reports whether another stood there.
func put16(text []byte, n int) (changed bool) {
	changed = int(binary.LittleEndian.Uint16(text)) != n
	binary.LittleEndian.PutUint16(text, uint16(n))
	return changed
}

// subjectIn returns how long the subject is at the beginning of a record of one of our
// streams; -1 where that cannot be told.
func subjectIn(stream string, text []byte) int {
	if hub, ok := strings.CutSuffix(stream, "-tasks"); ok {
		for _, prefix := range []string{hub + ".begun.", hub + ".task."} {
			if bytes.HasPrefix(text, []byte(prefix)) {
				return bytes.IndexByte(text, '{') // data begins so
			}
		}
		return -1
	}
	subject := ""
	if hub, ok := strings.CutSuffix(stream, "-usage"); ok {
		subject = hub + ".usage"
	} else if i := strings.LastIndex(stream, "-log-"); i >= 0 {
		subject = stream[:i] + ".log." + stream[i+len("-log-"):]
	}
	if subject == "" || !bytes.HasPrefix(text, []byte(subject)) {
		return -1
	}
	return len(subject)
}

// erasure is a record that says that there is no message at a place.
func (w *walk) erasure(place uint64) []byte {
	text := make([]byte, leastRecord)
	binary.LittleEndian.PutUint32(text, leastRecord)
	binary.LittleEndian.PutUint64(text[4:], place|erased)
	binary.LittleEndian.PutUint64(text[12:], uint64(time.Now().UnixNano()))
	sum := w.sum(text)
	copy(text[leastRecord-checksum:], sum[:])
	return text
}

// tell says what was found, and notes which tasks are named in what is lost.
func (w *walk) tell(f fate, text []byte, at int) {
	log := w.in.log.With("file", w.path, "at", at, "bytes", len(text), "copy", w.in.copies)
	if f == mended {
		log.Error("a record of the journal was damaged, and is mended: nothing is lost")
		return
	}
	var named []core.TaskID
	if i := bytes.Index(text, []byte(taskLine)); i >= 0 {
		for task, lines := range tasks(text[i:], "") {
			if _, is := task.Begun(); !is || !plain(task) {
				continue
			}
			named = append(named, task)
			seq := uint64(1)
			if i := bytes.LastIndex(lines, []byte(`{"seq":`)); i >= 0 {
				seq = max(seq, seqOf(lines[i:]))
			}
			w.in.lost[task] = max(w.in.lost[task], seq)
		}
	}
	const most = 16
	log.Error("a record of the journal was damaged beyond mending, and is taken out with what it had: the tasks named, as far as their names could be read, and perhaps others",
		"tasks", len(named), "first", named[:min(len(named), most)])
}
