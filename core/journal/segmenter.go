package journal

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// The bounds of a segment of text: whatever is reached first closes it.
const (
	SegmentAge   = 50 * time.Millisecond
	SegmentBytes = 4 << 10
)

// spareEvents is the most room that is kept for the events of another segment.
const spareEvents = 256

// Segmenter holds back the text of running tasks for a moment, so that pieces in
// a row become one record. Everything else passes at once, behind the text before
// it. It is for one goroutine.
type Segmenter struct {
	open  map[core.TaskID]*segment
	order []*segment   // by age; those already closed have no events
	spare []core.Event // room for the events of the next segment
}

type segment struct {
	task   core.TaskID
	events []core.Event
	bytes  int
	since  time.Time
}

// NewSegmenter makes an empty Segmenter.
func NewSegmenter() *Segmenter { return &Segmenter{open: map[core.TaskID]*segment{}} }

// Add takes events of one task in and appends to out the records that are due.
func (g *Segmenter) Add(out []Record, task core.TaskID, events []core.Event, now time.Time) []Record {
	s := g.open[task]
	for i, e := range events {
		switch {
		case !e.Mergeable():
			out, s = append(g.close(out, s), Record{task, e}), nil
			continue
		case s == nil && i+1 < len(events) && !events[i+1].Mergeable():
			out = append(out, Record{task, e}) // a segment of one, which the next would close
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

// Due appends to out the segments that are old enough at now, and returns how
// long to wait for the next: zero if none is open.
func (g *Segmenter) Due(out []Record, now time.Time) ([]Record, time.Duration) {
	for len(g.order) > 0 {
		s := g.order[0]
		if len(s.events) > 0 {
			if wait := s.since.Add(SegmentAge).Sub(now); wait > 0 {
				return out, wait
			}
			out = g.close(out, s)
		}
		g.order[0], g.order = nil, g.order[1:]
	}
	g.order = nil
	return out, 0
}

// Flush appends to out everything that is held back.
func (g *Segmenter) Flush(out []Record) []Record {
	for _, s := range g.order {
		if len(s.events) > 0 {
			out = g.close(out, s)
		}
	}
	g.order = nil
	return out
}

// close appends what an open segment holds back to out; nil is none.
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
