package hub

import (
	"iter"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// segmentEvents is how many events a segment of a log holds.
const segmentEvents = 256

// eventLog is the events of a task, in order. It grows by segments, so that a long log
// is not copied when it grows. What it returns stays as it is: events are appended, and
// never changed.
type eventLog struct {
	full [][]core.Event // segments that have no more room
	tail []core.Event   // the last segment; a short log has no other
}

// newEventLog makes an empty log with room for some events, at most a segment.
func newEventLog(room int) eventLog { return eventLog{tail: make([]core.Event, 0, room)} }

// logOf makes a log of events, with which it shares memory.
func logOf(events []core.Event) (l eventLog) {
	for len(events) > segmentEvents {
		l.full = append(l.full, events[:segmentEvents:segmentEvents])
		events = events[segmentEvents:]
	}
	l.tail = events[:len(events):len(events)]
	return l
}

func (l *eventLog) len() int { return len(l.full)*segmentEvents + len(l.tail) }

// at returns the event at an index.
func (l *eventLog) at(i int) core.Event { return l.segment(i / segmentEvents)[i%segmentEvents] }

// last returns the last event of a log that is not empty.
func (l *eventLog) last() core.Event { return l.tail[len(l.tail)-1] }

// segment returns the events that the nth segment has so far.
func (l *eventLog) segment(n int) []core.Event {
	if n < len(l.full) {
		return l.full[n]
	}
	return l.tail
}

// from returns the events from an index on to the end of their segment. They share
// memory with the log.
func (l *eventLog) from(i int) []core.Event {
	s := l.segment(i / segmentEvents)
	return s[i%segmentEvents : len(s) : len(s)]
}

// append adds an event. The tail is never full and empty logs have one: a segment that
// is full moves when the next event comes.
func (l *eventLog) append(e core.Event) {
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

// all yields the events in order.
func (l *eventLog) all() iter.Seq[core.Event] {
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

// backward yields the events from the last to the first.
func (l *eventLog) backward() iter.Seq[core.Event] {
	return func(yield func(core.Event) bool) {
		for i := l.len() - 1; i >= 0; i-- {
			if !yield(l.at(i)) {
				return
			}
		}
	}
}

// fold puts the first n events together.
func (l *eventLog) fold(n int) core.Answer {
	if n < l.len() {
		return core.Fold(l.slice(n))
	}
	if len(l.full) == 0 {
		return core.Fold(l.tail)
	}
	return core.Fold(append(slices.Clip(l.full), l.tail)...)
}

// slice returns the first n events in one piece, which they share with the log where
// they stand in one segment.
func (l *eventLog) slice(n int) []core.Event {
	if n <= segmentEvents {
		return l.segment(0)[:n:n]
	}
	out := make([]core.Event, 0, n)
	for e := range l.all() {
		if len(out) == n {
			break
		}
		out = append(out, e)
	}
	return out
}
