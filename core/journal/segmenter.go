package journal

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// The bounds of a segment of text. The bound that is reached first closes it. ShownAge takes the place of
// SegmentAge where readers get text only once it is written.
const (
	SegmentAge   = 50 * time.Millisecond
	ShownAge     = 10 * time.Millisecond
	SegmentBytes = 4 << 10
)

// spareEvents is the largest capacity that is kept for the events of the next segment.
const spareEvents = 256

// Segmenter delays the text of running tasks for a moment, so that consecutive pieces
// become one record. Other events pass at once, after the text before them. It is for one
// goroutine.
type Segmenter struct {
	age   time.Duration
	open  map[core.TaskID]*segment
	order []*segment   // oldest first; closed ones have no events
	spare []core.Event // capacity for the events of the next segment
}

type segment struct {
	task   core.TaskID
	events []core.Event
	bytes  int
	since  time.Time
}

// NewSegmenter returns an empty Segmenter, whose segments are closed at an age.
func NewSegmenter(age time.Duration) *Segmenter {
	return &Segmenter{age: age, open: map[core.TaskID]*segment{}}
}

// Add adds events of one task, and appends to out the records that are due.
func (g *Segmenter) Add(out []Record, task core.TaskID, events []core.Event, now time.Time) []Record {
	s := g.open[task]
	for i, e := range events {
		switch {
		case !e.Mergeable():
			out, s = append(g.close(out, s), Record{task, e}), nil
			continue
		case s == nil && i+1 < len(events) && !events[i+1].Mergeable():
			out = append(out, Record{task, e}) // a segment that the next event would close
			continue
		case s == nil:
			s = &segment{task: task, since: now, events: g.spare}
			g.spare = nil
			g.open[task] = s
			g.order = append(g.order, s)
		}
		s.events = append(s.events, e)
		if s.bytes += len(e.Body.(core.Text).Text); s.bytes >= SegmentBytes {
			out, s = g.close(out, s), nil
		}
	}
	return out
}

// Due appends to out the segments that are due, and returns how long it is until the next
// one is; zero if none is open.
func (g *Segmenter) Due(out []Record, now time.Time) ([]Record, time.Duration) {
	for len(g.order) > 0 {
		s := g.order[0]
		if len(s.events) > 0 {
			if wait := s.since.Add(g.age).Sub(now); wait > 0 {
				return out, wait
			}
			out = g.close(out, s)
		}
		g.order[0], g.order = nil, g.order[1:]
	}
	g.order = nil
	return out, 0
}

// Flush appends all delayed text to out.
func (g *Segmenter) Flush(out []Record) []Record {
	for _, s := range g.order {
		if len(s.events) > 0 {
			out = g.close(out, s)
		}
	}
	g.order = nil
	return out
}

// close appends the text of an open segment to out. s may be nil.
func (g *Segmenter) close(out []Record, s *segment) []Record {
	if s == nil {
		return out
	}
	delete(g.open, s.task)
	out = append(out, Record{s.task, core.MergeText(s.events)})
	clear(s.events)
	if cap(s.events) <= spareEvents {
		g.spare = s.events[:0]
	}
	s.events = nil
	return out
}
