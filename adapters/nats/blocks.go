package nats

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats.go"
)

// The embedded server keeps the messages of a stream in files, blocks, as records:
//
//	length 4 | sequence 8 | time 8 | length of the subject 2 | subject |
//	length of the header 4 | header | data | checksum 8
//
// The length of the header is there only if the highest bit of the length is set. The
// checksum covers the sequence, the time, the subject, the header and the data, but none
// of the lengths.
const (
	recordStart = 22
	checksum    = 8
	leastRecord = recordStart + checksum
	mostRecord  = 32 << 20

	hasHeader = 1 << 31 // in a length
	erased    = 1 << 63 // in a sequence: the message was deleted
	tombstone = 1 << 62 // in a sequence: the earlier message with that number was deleted
)

// streamsDir is where the embedded server keeps its streams, below the data directory.
func streamsDir(dir string) string { return filepath.Join(dir, "nats", "jetstream", "$G", "streams") }

// block is a file of messages of a stream.
type block struct {
	path  string
	index int
	hash  *highwayhash.Digest64
}

// blocksOf returns the blocks of the stream in a directory, in order.
func blocksOf(stream string) (blocks []block, err error) {
	files, err := filepath.Glob(filepath.Join(stream, "msgs", "*.blk"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		index, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".blk"))
		if err != nil {
			continue // the server ignores such files
		}
		key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", filepath.Base(stream), index))
		hash, err := highwayhash.NewDigest64(key[:])
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block{path, index, hash})
	}
	slices.SortFunc(blocks, func(a, b block) int { return cmp.Compare(a.index, b.index) })
	return blocks, nil
}

// read returns the content of the file, in buf if that is large enough.
func (b *block) read(buf []byte) ([]byte, error) {
	f, err := os.Open(b.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := int(info.Size())
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	n, err := f.ReadAt(buf[:size], 0)
	if n < size {
		return nil, err
	}
	return buf[:size], nil
}

// first returns the place of the first message; 0 if the block does not begin with one.
func (b *block) first() uint64 {
	f, err := os.Open(b.path)
	if err != nil {
		return 0
	}
	defer f.Close()
	var start [recordStart]byte
	if _, err := f.ReadAt(start[:], 0); err != nil {
		return 0
	}
	if r := (record{place: binary.LittleEndian.Uint64(start[4:])}); r.live() {
		return r.place
	}
	return 0
}

// record is a record of a block. Its parts share memory with the text it was read from.
type record struct {
	size    int
	place   uint64 // with its flags
	at      int64  // in nanoseconds
	subject []byte
	header  []byte
	data    []byte
}

// live reports whether the record is a message.
func (r record) live() bool { return r.place&(erased|tombstone) == 0 && r.place != 0 }

// sizeOf returns the length that the record at the beginning of text states; 0 if no
// record can have it.
func sizeOf(text []byte) int {
	if len(text) < leastRecord {
		return 0
	}
	size := binary.LittleEndian.Uint32(text) &^ hasHeader
	if size < leastRecord || size > mostRecord {
		return 0
	}
	return int(size)
}

// record reads the record at the beginning of text, and reports whether it is complete
// and undamaged.
func (b *block) record(text []byte) (r record, ok bool) {
	size := sizeOf(text)
	if size == 0 || size > len(text) {
		return record{}, false
	}
	text = text[:size]
	subject := int(binary.LittleEndian.Uint16(text[20:]))
	rest := text[recordStart : size-checksum]
	if subject > len(rest) {
		return record{}, false
	}
	r = record{size: size, place: binary.LittleEndian.Uint64(text[4:]), at: int64(binary.LittleEndian.Uint64(text[12:]))}
	r.subject, r.data = rest[:subject], rest[subject:]
	if text[3]&0x80 != 0 {
		if len(r.data) < 4 {
			return record{}, false
		}
		header := binary.LittleEndian.Uint32(r.data)
		r.data = r.data[4:]
		if uint64(header) <= uint64(len(r.data)) { // else align corrects it
			r.header, r.data = r.data[:header], r.data[header:]
		}
	}
	sum := b.sum(text)
	return r, bytes.Equal(sum[:], text[size-checksum:])
}

// sum returns the checksum of a record, provided that its lengths are right.
func (b *block) sum(text []byte) (sum [checksum]byte) {
	rest := text[recordStart : len(text)-checksum]
	subject := int(binary.LittleEndian.Uint16(text[20:]))
	b.hash.Reset()
	_, _ = b.hash.Write(text[4:20])
	if text[3]&0x80 != 0 {
		_, _ = b.hash.Write(rest[:subject])
		rest = rest[subject+4:]
	}
	_, _ = b.hash.Write(rest)
	b.hash.Sum(sum[:0])
	return sum
}

// message is a message of a stream. Its data is valid until the function that was called
// with it returns.
type message struct {
	place   uint64
	at      time.Time
	subject string
	header  nats.Header
	data    []byte
	owner   bool // it is an owner, and nothing else
}

// replayFiles calls each for the messages of a stream from first to last, oldest first. It
// reads them from the files of the embedded server and stops before the first one that it
// cannot read: next is its place, and more reports whether the server is to be asked from
// there on.
func replayFiles(stream string, first, last uint64, each func(message) (more bool, err error)) (next uint64, more bool, err error) {
	blocks, err := blocksOf(stream)
	if err != nil {
		return first, true, nil
	}
	r := replaying{next: first, last: last, each: each}
	var buf []byte
	for i, b := range blocks {
		if i+1 < len(blocks) {
			if after := blocks[i+1].first(); after > 0 && after <= r.next {
				continue
			}
		}
		text, err := b.read(buf)
		if os.IsNotExist(err) {
			continue // retention dropped it meanwhile
		}
		if err != nil {
			return r.next, true, nil
		}
		buf = text
		if whole, more, err := r.through(b, text); !whole {
			return r.next, more, err
		}
	}
	return r.next, r.next <= last, nil
}

// replaying passes the messages of blocks on.
type replaying struct {
	next, last uint64
	subject    string // of the latest message: many have the same
	each       func(message) (more bool, err error)
}

// through passes the messages in a block on. It reports false before the end of the block, with what
// [replayFiles] then returns.
func (r *replaying) through(b block, text []byte) (whole, more bool, err error) {
	for len(text) > 0 {
		rec, ok := b.record(text)
		if !ok {
			return false, true, nil
		}
		text = text[rec.size:]
		if !rec.live() || rec.place < r.next {
			continue
		}
		if rec.place > r.last {
			return false, false, nil
		}
		m, err := r.message(rec)
		if err != nil {
			return false, true, nil
		}
		if more, err := r.each(m); err != nil || !more {
			return false, false, err
		}
		r.next = rec.place + 1
	}
	return true, true, nil
}

// message returns the message of a record.
func (r *replaying) message(rec record) (m message, err error) {
	if string(rec.subject) != r.subject {
		r.subject = string(rec.subject)
	}
	m = message{place: rec.place, at: time.Unix(0, rec.at).UTC(), subject: r.subject, data: rec.data}
	if bytes.Contains(rec.header, []byte(partHeader)) {
		m.header, err = nats.DecodeHeadersMsg(rec.header)
	}
	return m, err
}
