package nats

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// marks say how far the streams of the embedded server of a hub alone were, in a file beside them: what is
// missing at the end of a stream leaves no other trace. A file that is missing, broken or out of date says less,
// and is no error.
type marks struct {
	mu      sync.Mutex
	Streams map[string]mark `json:"streams"`
}

// mark is how far a stream was, and what it is known to lack.
type mark struct {
	// First and Last are the places of its first and last message, and FirstAt is when the first one was stored.
	First   uint64    `json:"first"`
	FirstAt time.Time `json:"first_at"`
	Last    uint64    `json:"last"`
	// Cut is the last place that was left when the end of the stream was missing.
	Cut uint64 `json:"cut,omitempty"`
	// Holes are the places of which was said that they are missing.
	Holes []hole `json:"holes,omitempty"`

	looked  bool // the whole stream was read since the start
	first   uint64
	firstAt time.Time // First and FirstAt before the start
}

// marksFile is the file of the marks in a store: it is moved, copied and removed with the streams.
const marksFile = "marks.json"

// read reads the marks in a store, if they are there.
func (m *marks) read(store string) {
	text, err := os.ReadFile(filepath.Join(store, marksFile))
	if err != nil || json.Unmarshal(text, m) != nil || m.Streams == nil {
		m.Streams = map[string]mark{}
	}
}

// write writes the marks for the next start. What the operating system has of them survives the process, as
// it does of the streams. Callers hold mu.
func (m *marks) write(store string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	file := filepath.Join(store, marksFile)
	temp := file + ".tmp"
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, file)
}

// markTime is the time between two writes of the marks. What is lost of the last ones before a kill is not
// counted.
const markTime = 5 * time.Second

// mark writes how far the streams are now, by what was acknowledged.
func (j *Journal) mark(ctx context.Context) {
	for _, f := range j.fences {
		f.mu.Lock()
		last := f.place
		f.mu.Unlock()
		now, err := f.state(ctx)
		j.marks.mu.Lock()
		m := j.marks.Streams[f.stream]
		if m.Last = last; err == nil {
			m.First, m.FirstAt = now.FirstSeq, now.FirstTime
		}
		j.marks.Streams[f.stream] = m
		j.marks.mu.Unlock()
	}
	j.marks.mu.Lock()
	defer j.marks.mu.Unlock()
	if j.home.check() != nil { // what is there now is not what was opened
		return
	}
	if err := j.marks.write(filepath.Join(j.home.dir, storeDir)); err != nil {
		j.log.Debug("writing how far the journal is", "error", err)
	}
}

// dropIndexes removes what the embedded server has written about its files, so that it looks through them when it
// starts, and checks each record. With an index it believes what a damaged file says: a wrong number can make it take
// what is written later for deleted, or fill all memory.
func dropIndexes(store string) error {
	files, err := filepath.Glob(filepath.Join(streamsIn(store), "*", "msgs", "index.db"))
	for _, file := range files {
		err = errors.Join(err, ignoreMissing(os.Remove(file)))
	}
	return err
}

// opened says what is missing at the end of a stream that the embedded server has just opened.
func (f *fence) opened(ctx context.Context, s jetstream.Stream) error {
	info, err := s.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return err
	}
	if cut := info.State.Lost; cut != nil && cut.Bytes > 0 {
		f.j.log.Warn("the embedded server could not read a part of the journal, as after a loss of power or damage, and has cut it off", "stream", f.stream, "bytes", cut.Bytes)
	}
	f.j.marks.mu.Lock()
	defer f.j.marks.mu.Unlock()
	m := f.j.marks.Streams[f.stream]
	if last := info.State.LastSeq; last < m.Last {
		f.lacks(hole{From: last + 1, To: m.Last})
		m.Cut = last
		m.Holes = slices.DeleteFunc(m.Holes, func(h hole) bool { return h.To > last }) // the places are used again
		if m.First > last {
			m.First = 0
		}
	}
	m.first, m.firstAt = m.First, m.FirstAt
	f.j.marks.Streams[f.stream] = m
	return nil
}

// replayed takes those out of the holes that retention has made, after a replay whose first message was at the place
// first. After the first one of the whole stream it says which were not said before.
func (f *fence) replayed(ctx context.Context, whole bool, first uint64, holes *[]hole) error {
	f.j.marks.mu.Lock()
	m, marked := f.j.marks.Streams[f.stream]
	f.j.marks.mu.Unlock()
	looks := whole && marked && !m.looked
	if len(*holes) == 0 && !looks {
		return nil
	}
	now, err := f.awaitState(ctx) // which waits for a leader
	if err != nil {
		return err
	}
	*holes = slices.DeleteFunc(*holes, func(h hole) bool { return h.To < now.FirstSeq })
	if !looks {
		return nil
	}
	all := *holes
	if first == 0 {
		first = now.FirstSeq
	}
	if m.first > 0 && first > m.first && !f.mayHaveDropped(m.firstAt, now) {
		all = append([]hole{{From: m.first, To: first - 1}}, all...)
	}
	for _, h := range all {
		if !slices.ContainsFunc(m.Holes, func(said hole) bool { return said.From <= h.From && h.To <= said.To }) {
			f.lacks(h)
		}
	}
	f.j.marks.mu.Lock()
	defer f.j.marks.mu.Unlock()
	m = f.j.marks.Streams[f.stream]
	m.Holes, m.looked = slices.Clone(all), true
	f.j.marks.Streams[f.stream] = m
	return nil
}

// mayHaveDropped reports whether retention may have dropped what was the first message of a stream, and stored at a
// time: it was too old, or the stream is as large as it may be.
func (f *fence) mayHaveDropped(at time.Time, now jetstream.StreamState) bool {
	return time.Since(at) >= f.keep.Age || int64(now.Bytes)+min(2*payload, f.keep.Bytes/8) >= f.keep.Bytes
}

// lacks says that records are missing.
func (f *fence) lacks(h hole) {
	f.j.log.Error("records of the journal are missing, as if a file had been damaged, emptied, cut off or removed: the tasks in them are unknown, or have gaps",
		"stream", f.stream, "records", h.To-h.From+1, "from", h.From, "to", h.To)
}

// setCut notes that what was at the places up to one may lack messages.
func (f *fence) setCut(last uint64) {
	f.j.marks.mu.Lock()
	defer f.j.marks.mu.Unlock()
	if f.j.marks.Streams == nil {
		f.j.marks.Streams = map[string]mark{}
	}
	m := f.j.marks.Streams[f.stream]
	m.Cut = last
	f.j.marks.Streams[f.stream] = m
}

// cut returns the place after which the end of the stream was missing at some start; 0 if that never was so.
func (f *fence) cut() uint64 {
	f.j.marks.mu.Lock()
	defer f.j.marks.mu.Unlock()
	return f.j.marks.Streams[f.stream].Cut
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
