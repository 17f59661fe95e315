package nats

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// walk checks the records of a block that may be damaged.
type walk struct {
	block
	in     *inspection
	stream string
	newest bool   // it is the last block
	closed uint64 // the place of the last message that the stream is known to have had
	known  mark   // how far the stream was
	seen   *seen
	last   uint64 // the last place so far
	intact int    // no intact record begins between a damaged one and this offset
}

// through returns what is left of a block, which shares memory with text, and whether
// nothing was changed.
func (w *walk) through(text []byte) (rest []byte, same bool, err error) {
	kept, last := 0, uint64(0)
	same = true
	for at := 0; at < len(text); {
		size, f := w.find(text, at)
		if f == repaired || f == removed {
			if err := w.change(&same); err != nil {
				return nil, false, err
			}
			w.report(f, text[at:at+size], at)
		}
		if f == cutShort {
			w.in.log.Warn("the last write to the journal is incomplete, as after a loss of power, and is dropped", "file", w.path, "bytes", size)
		}
		if f == removed {
			w.seen.removed = true
			if w.newest && at+size == len(text) {
				last = w.last + 1
			}
		} else {
			if kept != at {
				copy(text[kept:], text[at:at+size])
			}
			kept += size
		}
		at += size
	}
	if !w.newest {
		return text[:kept], same, nil
	}
	if w.last < w.closed {
		if err := w.change(&same); err != nil {
			return nil, false, err
		}
		last = w.closed
		w.seen.endsAt(last, w.known)
	}
	if last > 0 {
		return append(text[:kept:kept], w.deleted(last)...), false, nil // so that the place is not used again
	}
	return text[:kept], same, nil
}

// change keeps a copy of the block before its first change.
func (w *walk) change(same *bool) error {
	if !*same {
		return nil
	}
	*same = false
	return w.in.keep(w.path)
}

// find is look, but what is cut short although it was complete when the store was closed counts as removed.
func (w *walk) find(text []byte, at int) (size int, f fate) {
	size, f = w.look(text, at)
	if f == cutShort && w.last < w.closed {
		f = removed
	}
	return size, f
}

// fate is what becomes of a record.
type fate int

const (
	intact   fate = iota
	repaired      // it was damaged, and is as it was written again
	removed       // it is damaged beyond repair
	cutShort      // it was not written completely; the server truncates it
)

// look checks the record at an offset, repairs it if it can, and returns its length.
func (w *walk) look(text []byte, at int) (size int, f fate) {
	rest := text[at:]
	r, ok := w.record(rest)
	switch {
	case ok && w.align(rest[:r.size]):
		f = repaired
	case ok:
		f = intact
	default:
		w.seek(text, at)
		rest = text[at:w.intact]
		size := sizeOf(rest)
		switch {
		case size > 0 && size < len(rest) && (w.measure(rest[:size]) || w.flip(rest[:size])):
			rest = rest[:size]
		case w.measure(rest):
		case w.newest && w.intact == len(text) && incomplete(rest):
			return len(rest), cutShort
		case w.flip(rest):
		case size > 0 && size < len(rest):
			return size, removed // the next one may be damaged as well
		default:
			return len(rest), removed
		}
		r, f = w.must(rest), repaired
	}
	w.seen.note(r)
	w.last = max(w.last, r.place&^(erased|tombstone)) // deleted messages count too
	return r.size, f
}

// must returns a record that is known to be intact.
func (w *walk) must(text []byte) record {
	w.align(text)
	r, _ := w.record(text)
	return r
}

// seek sets intact to the beginning of the first intact record after a damaged one, or to
// the end of the text.
func (w *walk) seek(text []byte, at int) {
	for w.intact = max(w.intact, at+1); w.intact < len(text); w.intact++ {
		rest := text[w.intact:]
		// This rules out almost every offset without a checksum.
		const mostPlace = 1 << 48
		if size := sizeOf(rest); size == 0 || size > len(rest) || binary.LittleEndian.Uint64(rest[4:])&^(erased|tombstone) > mostPlace {
			continue
		}
		if _, ok := w.record(rest); ok {
			return
		}
	}
}

// incomplete reports whether the end of the last block looks like an interrupted write: it
// is shorter than it states, or ends with zeros in place of the checksum.
func incomplete(text []byte) bool {
	end := text[max(0, len(text)-checksum):]
	return len(text) < leastRecord || int(binary.LittleEndian.Uint32(text)&^hasHeader) > len(text) || len(bytes.Trim(end, "\x00")) == 0
}

// measure sets the lengths of a record, which no checksum covers, to what its content
// shows, and reports whether the record is intact then.
func (w *walk) measure(text []byte) bool {
	if len(text) < leastRecord || len(text) > mostRecord {
		return false
	}
	before := bytes.Clone(text)
	stated := binary.LittleEndian.Uint32(text)
	for _, length := range []uint32{uint32(len(text)) | stated&hasHeader, uint32(len(text)) | ^stated&hasHeader} {
		binary.LittleEndian.PutUint32(text, length)
		w.align(text)
		if _, ok := w.record(text); ok {
			return true
		}
		copy(text, before)
	}
	return false
}

// flip corrects a record in which a single bit is wrong.
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
			i = recordStart // skip the length of the subject
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

// fits reports whether the parts of a record fit into it.
func fits(text []byte) bool {
	need := int(binary.LittleEndian.Uint16(text[20:]))
	if text[3]&0x80 != 0 {
		need += 4
	}
	return need <= len(text)-leastRecord
}

// align sets the lengths of the subject and the header of a record, which no checksum
// covers, to what its content shows, and reports whether that changed them.
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

// put16 writes a number, and reports whether that changed it.
func put16(text []byte, n int) (changed bool) {
	changed = int(binary.LittleEndian.Uint16(text)) != n
	binary.LittleEndian.PutUint16(text, uint16(n))
	return changed
}

// subjectIn returns the length of the subject at the beginning of text, in a record of a
// stream of the hub; -1 if it cannot be determined.
func subjectIn(stream string, text []byte) int {
	if hub, ok := strings.CutSuffix(stream, "-tasks"); ok {
		for _, prefix := range []string{hub + ".begun.", hub + ".task."} {
			if bytes.HasPrefix(text, []byte(prefix)) {
				return bytes.IndexByte(text, '{') // the data begins with it
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

// deleted returns a record that marks the message at a place as deleted.
func (w *walk) deleted(place uint64) []byte {
	text := make([]byte, leastRecord)
	binary.LittleEndian.PutUint32(text, leastRecord)
	binary.LittleEndian.PutUint64(text[4:], place|erased)
	binary.LittleEndian.PutUint64(text[12:], uint64(time.Now().UnixNano()))
	sum := w.sum(text)
	copy(text[leastRecord-checksum:], sum[:])
	return text
}

// report logs what became of a damaged record, and notes the tasks that a removed one
// names.
func (w *walk) report(f fate, text []byte, at int) {
	log := w.in.log.With("file", w.path, "at", at, "bytes", len(text), "copy", w.in.copies)
	if f == repaired {
		log.Error("a record of the journal was damaged, and is repaired: nothing is lost")
		return
	}
	var named []core.TaskID
	if i := bytes.Index(text, []byte(taskLine)); i >= 0 {
		for task, lines := range tasks(text[i:]) {
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
	log.Error("a record of the journal was damaged beyond repair, and is removed: it had events of the tasks named, as far as their ids could be read, and perhaps of others",
		"tasks", len(named), "first", named[:min(len(named), most)])
}
