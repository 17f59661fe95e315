package nats

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// marks say how far the streams of the embedded server of a hub alone were, in a file beside them: what is
// missing at the end of a file, or with a whole one, leaves no other trace. A file that is missing, broken or
// out of date says less, and is no error.
type marks struct {
	Streams map[string]mark `json:"streams"`
}

// mark is how far a stream was.
type mark struct {
	// First and Last are the places of its first and last message.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// At is when that was so. Closed says that nothing has been stored or dropped since.
	At     time.Time `json:"at"`
	Closed bool      `json:"closed,omitempty"`
	// Holes are the places between them that are missing, and of which that was said.
	Holes []hole `json:"holes,omitempty"`
}

// hole is a range of places without a message.
type hole struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`

	after, before time.Time // when the messages around it were stored; zero where that is not known
}

// in reports whether a hole is a part of one of others.
func (h hole) in(others []hole) bool {
	return slices.ContainsFunc(others, func(o hole) bool { return o.From <= h.From && h.To <= o.To })
}

// marksFile is the file of the marks below a data directory: it is moved, copied and removed with the streams.
func marksFile(dir string) string { return filepath.Join(dir, "nats", "marks.json") }

// readMarks returns the marks of the streams in a data directory; none if there is nothing to read.
func readMarks(dir string) marks {
	var m marks
	if text, err := os.ReadFile(marksFile(dir)); err != nil || strictjson.Decode(text, strictjson.Limits{}, &m) != nil || m.Streams == nil {
		return marks{Streams: map[string]mark{}}
	}
	return m
}

// write writes the marks for the next start. What the operating system has of them survives the process, as
// it does of the streams.
func (m marks) write(dir string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	temp := marksFile(dir) + ".tmp"
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, marksFile(dir))
}

// markTime is the time between two writes of the marks. What is lost of the last ones before a kill is said
// only by chance.
const markTime = 5 * time.Second

// keepMarks writes how far the streams are until ctx ends.
func (j *Journal) keepMarks(ctx context.Context) {
	tick := time.NewTicker(markTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			j.markRunning(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// markRunning writes how far the streams are now.
func (j *Journal) markRunning(ctx context.Context) {
	j.mark(func(f *fence) (first, last uint64) {
		state, err := f.state(ctx)
		if err != nil {
			return 0, 0
		}
		return state.FirstSeq, state.LastSeq
	}, false)
}

// markClosed writes how far the streams are that the embedded server has closed.
func (j *Journal) markClosed() {
	if j.home != nil && j.alone() {
		j.mark(func(f *fence) (first, last uint64) { return indexOf(j.home.of(f.stream)) }, true)
	}
}

// mark writes how far the streams are, by a function that returns zeros where that is not known.
func (j *Journal) mark(place func(*fence) (first, last uint64), closed bool) {
	j.reopening.RLock()
	defer j.reopening.RUnlock()
	if j.home.check() != nil { // what is there now is not what was opened
		return
	}
	all, moved := readMarks(j.home.dir), false
	for _, f := range j.fences {
		before := all.Streams[f.stream]
		m := mark{At: time.Now().UTC(), Closed: closed, Holes: before.Holes}
		if m.First, m.Last = place(f); m.Last == 0 || m.First == before.First && m.Last == before.Last && closed == before.Closed {
			continue
		}
		// Retention dropped what was around a hole, or the stream began again, or ended before it, and reuses
		// its places.
		m.Holes = slices.DeleteFunc(m.Holes, func(h hole) bool { return h.From <= m.First || h.To > m.Last })
		all.Streams[f.stream], moved = m, true
	}
	if !moved {
		return
	}
	if err := all.write(j.home.dir); err != nil {
		j.log.Debug("writing how far the journal is", "error", err)
	}
}

// seen is what the inspection of a stream has found in its blocks, in order.
type seen struct {
	first, last uint64
	begin, at   time.Time // of the first and of the last one
	removed     bool      // a damaged message after the last one was removed, and that was said
	emptied     bool      // a block before the first one is empty
	holes       []hole
	told        []hole // those of them of which nothing is to be said
}

// note notes a message of a block, also a deleted one.
func (s *seen) note(r record) {
	place, at := r.place&^erased, time.Unix(0, r.at).UTC()
	if place&tombstone != 0 || place <= s.last {
		return
	}
	switch {
	case s.first == 0:
		s.first, s.begin = place, at
	case place > s.last+1:
		s.lack(hole{From: s.last + 1, To: place - 1, after: s.at, before: at})
	}
	s.last, s.at, s.removed = place, at, false
}

// lack notes a hole.
func (s *seen) lack(h hole) {
	s.holes = append(s.holes, h)
	if s.removed {
		s.told = append(s.told, h)
	}
}

// endsAt notes that a stream had messages up to a place.
func (s *seen) endsAt(last uint64, known mark) {
	from := max(s.last+1, 1)
	if s.first == 0 {
		from = max(known.First, 1)
		s.first = from
	}
	if from <= last {
		s.lack(hole{From: from, To: last, after: s.at, before: known.At})
		s.last = last
	}
}

// lacks completes what is missing of a stream by what was known of it, says what was not said before, and
// returns how far the stream is now.
func (in *inspection) lacks(dir string, s *seen, known mark) (now mark, err error) {
	// Retention may have dropped what was first, unless the store was closed then.
	if s.first > known.First && known.First > 0 && s.last <= known.Last && (known.Closed || s.emptied) {
		s.holes = append(s.holes, hole{From: known.First, To: s.first - 1, before: s.begin})
	}
	said := false
	for _, h := range s.holes {
		if h.in(known.Holes) || h.in(s.told) {
			continue
		}
		said = true
		log := in.log.With("stream", filepath.Base(dir), "records", h.To-h.From+1, "from", h.From, "to", h.To)
		if !h.after.IsZero() {
			log = log.With("after", h.after)
		}
		if !h.before.IsZero() {
			log = log.With("before", h.before)
		}
		log.Error("records of the journal are missing, as if a file had been emptied, cut off or removed: the tasks in them are unknown, or have gaps")
	}
	if said { // the index of the server still has them
		err = ignoreMissing(os.Remove(filepath.Join(dir, "msgs", "index.db")))
	}
	return mark{First: s.first, Last: s.last, At: time.Now().UTC(), Holes: s.holes}, err
}
