package nats

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/highwayhash"

	"github.com/dragoman-hub/dragoman/core"
)

// inspection checks the files of the embedded server before it is started. The server
// truncates a file at the first damaged record, which loses all records after it. The
// inspection repairs such a record if its content proves how it was, and otherwise removes
// it, after copying the file.
type inspection struct {
	data   string // the data directory
	copies string // the directory with copies of damaged files; "" before there are any
	log    *slog.Logger
	until  time.Time // when to stop searching for flipped bits
	lost   map[core.TaskID]uint64
	marks  marks
}

// searchTime bounds the search for flipped bits in all files.
const searchTime = 3 * time.Second

// inspect checks all streams below the data directory. It returns the tasks named in the
// records that it removed, each with the last event that it found there.
func inspect(data string, log *slog.Logger) (lost map[core.TaskID]uint64, err error) {
	in := inspection{data: data, log: log, until: time.Now().Add(searchTime), lost: map[core.TaskID]uint64{}, marks: readMarks(data)}
	streams, err := filepath.Glob(filepath.Join(streamsDir(data), "*"))
	if err != nil {
		return nil, err
	}
	for _, s := range streams {
		if err := in.stream(s); err != nil {
			return nil, fmt.Errorf("inspecting the journal: %w", err)
		}
	}
	if len(streams) > 0 {
		if err := in.marks.write(data); err != nil {
			log.Debug("writing how far the journal is", "error", err)
		}
	}
	return in.lost, nil
}

// stream checks one stream.
func (in *inspection) stream(dir string) error {
	if err := in.settings(dir); err != nil {
		return err
	}
	blocks, err := blocksOf(dir)
	if err != nil {
		return err
	}
	var buf []byte
	name := filepath.Base(dir)
	var last uint64
	var s seen
	known := in.marks.Streams[name]
	first, closed := indexOf(dir)
	known.First, closed = max(known.First, first), max(closed, known.Last)
	for i, b := range blocks {
		text, err := b.read(buf)
		if err != nil {
			return err
		}
		buf = text
		w := walk{block: b, in: in, stream: name, newest: i == len(blocks)-1, last: last, closed: closed, known: known, seen: &s}
		s.emptied = s.emptied || len(text) == 0 && !w.newest && s.first == 0
		rest, sound, err := w.through(text)
		if err == nil && !sound {
			err = in.replace(b.path, rest)
		}
		if err != nil {
			return err
		}
		last = w.last
	}
	if len(blocks) == 0 {
		s.endsAt(closed, known)
	}
	if strings.HasPrefix(name, "KV_") { // its messages are replaced, which leaves holes
		return nil
	}
	in.marks.Streams[name], err = in.lacks(dir, &s, known)
	return err
}

// indexOf returns the places of the first and the last message in the index of a stream, which the
// server writes when it closes the store and every few minutes. They are 0 if there is no
// index, or a damaged one.
func indexOf(dir string) (first, last uint64) {
	text, err := os.ReadFile(filepath.Join(dir, "msgs", "index.db"))
	const start = 2 // magic, version
	if err != nil || len(text) < start+checksum {
		return 0, 0
	}
	text, sum := text[:len(text)-checksum], text[len(text)-checksum:]
	if want := sumOf(dir, text); !bytes.Equal(sum, want[:]) {
		return 0, 0
	}
	text = text[start:]
	var fields [5]uint64 // messages, bytes, first place, its time, last place
	for i := range fields {
		n := 0
		if fields[i], n = binary.Uvarint(text); n <= 0 {
			return 0, 0
		}
		text = text[n:]
	}
	return fields[2], fields[4]
}

// sumOf returns the checksum of a file of a stream that is not a block.
func sumOf(dir string, text []byte) (sum [checksum]byte) {
	key := sha256.Sum256([]byte(filepath.Base(dir)))
	binary.LittleEndian.PutUint64(sum[:], highwayhash.Sum64(text, key[:]))
	return sum
}

// settings checks the settings of a stream. The server ignores a stream whose settings are
// damaged. If they are removed, it writes them again and finds the messages.
func (in *inspection) settings(dir string) error {
	file, sumFile := filepath.Join(dir, "meta.inf"), filepath.Join(dir, "meta.sum")
	text, err := os.ReadFile(file)
	if err != nil {
		return ignoreMissing(err)
	}
	want := sumOf(dir, text)
	if got, err := os.ReadFile(sumFile); err != nil || string(got) == hex.EncodeToString(want[:]) {
		return ignoreMissing(err)
	}
	for _, path := range []string{file, sumFile} {
		if err := in.keep(path); err != nil {
			return err
		}
	}
	in.log.Error("the settings of a stream of the journal were damaged, and are written again; its messages are not touched", "file", file, "copies", in.copies)
	return errors.Join(os.Remove(sumFile), os.Remove(file))
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// keep copies a damaged file to the directory of copies.
func (in *inspection) keep(path string) error {
	if in.copies == "" {
		in.copies = filepath.Join(in.data, "nats-damaged", time.Now().UTC().Format("20060102T150405.000Z"))
	}
	below, err := filepath.Rel(streamsDir(in.data), path)
	if err != nil {
		return err
	}
	copied := filepath.Join(in.copies, below)
	if _, err := os.Stat(copied); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
		return fmt.Errorf("keeping a copy of what is damaged: %w", err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = writeWhole(copied, text)
	}
	if err != nil {
		return fmt.Errorf("keeping a copy of what is damaged: %w", err)
	}
	return nil
}

// replace overwrites a damaged block, of which there is a copy. It first removes the index
// of the server, which still has the records that were removed.
func (in *inspection) replace(path string, text []byte) error {
	if err := os.Remove(filepath.Join(filepath.Dir(path), "index.db")); ignoreMissing(err) != nil {
		return err
	}
	return writeWhole(path, text)
}

// writeWhole writes a file atomically.
func writeWhole(path string, text []byte) error {
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
