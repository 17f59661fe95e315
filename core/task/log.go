package task

import (
	"iter"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// segmentEvents is how many events a segment of a log holds.
const segmentEvents = 256

// Log is the events of a task, in order. It grows by segments, so that a long log is not
// copied. Events are appended and never changed, so what it returns stays valid.
type Log struct {
	full [][]core.Event // full segments
	tail []core.Event   // the last segment; the only one of a short log
}

// newLog returns an empty log with capacity for some events, at most a segment.
func newLog(room int) Log { return Log{tail: make([]core.Event, 0, room)} }

// LogOf returns a log of events, with which it shares memory.
func LogOf(events []core.Event) (l Log) {
	for len(events) > segmentEvents {
		l.full = append(l.full, events[:segmentEvents:segmentEvents])
		events = events[segmentEvents:]
	}
	l.tail = events[:len(events):len(events)]
	return l
}

// Len returns how many events there are.
func (l *Log) Len() int { return len(l.full)*segmentEvents + len(l.tail) }

// At returns the event at an index.
func (l *Log) At(i int) core.Event { return l.segment(i / segmentEvents)[i%segmentEvents] }

// Last returns the last event of a log that is not empty.
func (l *Log) Last() core.Event { return l.tail[len(l.tail)-1] }

// segment returns the events of the nth segment.
func (l *Log) segment(n int) []core.Event {
	if n < len(l.full) {
		return l.full[n]
	}
	return l.tail
}

// from returns the events from an index to the end of its segment. They share memory with
// the log.
func (l *Log) from(i int) []core.Event {
	s := l.segment(i / segmentEvents)
	return s[i%segmentEvents : len(s) : len(s)]
}

// append adds an event. A full tail moves to the full segments when the next event comes, so
// that the tail of a log with events is never empty.
func (l *Log) append(e core.Event) {
	switch n := len(l.tail); {
	case n == segmentEvents:
		l.full = append(l.full, l.tail)
		l.tail = make([]core.Event, 0, segmentEvents)
	case n == cap(l.tail):
		grown := make([]core.Event, n, min(segmentEvents, max(8, 2*n)))
		copy(grown, l.tail)
		l.tail = grown
	}
	l.tail = append(l.tail, e)
}

// All yields the events in order.
func (l *Log) All() iter.Seq[core.Event] {
	return func(yield func(core.Event) bool) {
		for n := range len(l.full) + 1 {
			for _, e := range l.segment(n) {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Backward yields the events from the last to the first.
func (l *Log) Backward() iter.Seq[core.Event] {
	return func(yield func(core.Event) bool) {
		for i := l.Len() - 1; i >= 0; i-- {
			if !yield(l.At(i)) {
				return
			}
		}
	}
}

// Fold returns the outcome of the first n events.
func (l *Log) Fold(n int) core.Answer {
	if n < l.Len() {
		return core.Fold(l.slice(n))
	}
	if len(l.full) == 0 {
		return core.Fold(l.tail)
	}
	return core.Fold(append(slices.Clip(l.full), l.tail)...)
}

// joined returns the events with text joined as the journal joins it, of a task in its first epoch.
func (l *Log) joined() Log {
	g, records := journal.NewSegmenter(journal.SegmentAge), []journal.Record(nil)
	for n := range len(l.full) + 1 {
		s := l.segment(n)
		for i := range s {
			records, _ = g.Due(records, s[i].At)
			records = g.Add(records, "", s[i:i+1], s[i].At)
		}
	}
	records = g.Flush(records)
	events := make([]core.Event, len(records))
	for i, r := range records {
		events[i] = r.Event
	}
	return LogOf(events)
}

// slice returns the first n events in one piece. They share memory with the log if they are
// in one segment.
func (l *Log) slice(n int) []core.Event {
	if n <= segmentEvents {
		return l.segment(0)[:n:n]
	}
	out := make([]core.Event, 0, n)
	for e := range l.All() {
		if len(out) == n {
			break
		}
		out = append(out, e)
	}
	return out
}
