package core

import (
	"math"
	"slices"
	"strings"
)

// Merged describes an event of text that consists of several in a row.
type Merged struct {
	// Cuts are the offsets, in bytes of the text, at which the second and all further
	// pieces begin.
	Cuts []int `json:"cuts"`
}

// fits reports whether the event of the body at seq can stand for several so.
func (m *Merged) fits(seq uint64, body Body) bool {
	if m == nil {
		return true
	}
	text, ok := body.(Text)
	last := 0
	for _, c := range m.Cuts {
		ok = ok && last <= c && c <= len(text.Text)
		last = c
	}
	return ok && seq <= math.MaxUint64-uint64(len(m.Cuts))
}

// MergeText joins consecutive events of text without foreign fields into one that has all of
// their sequence numbers. It panics unless events is a non-empty run of such events in
// order.
func MergeText(events []Event) Event {
	first := events[0]
	if len(events) == 1 {
		return first
	}
	size, pieces := 0, 0
	for _, e := range events {
		size, pieces = size+len(e.Body.(Text).Text), pieces+int(e.End()-e.Seq)+1
	}
	var text strings.Builder
	text.Grow(size)
	cuts := make([]int, 0, pieces-1)
	for i, e := range events {
		if i > 0 {
			cuts = append(cuts, text.Len())
		}
		if e.Merged != nil {
			for _, c := range e.Merged.Cuts {
				cuts = append(cuts, text.Len()+c)
			}
		}
		text.WriteString(e.Body.(Text).Text)
	}
	first.Body, first.Merged = Text{text.String()}, &Merged{cuts}
	return first
}

// Unmerge returns the events with merged text in its pieces. It returns events itself if there is
// none.
func Unmerge(events []Event) []Event {
	merged := func(e Event) bool { return e.Merged != nil }
	if !slices.ContainsFunc(events, merged) {
		return events
	}
	var out []Event
	for _, e := range events {
		if e.Merged == nil {
			out = append(out, e)
			continue
		}
		text, from := e.Body.(Text).Text, 0
		cuts := append(slices.Clone(e.Merged.Cuts), len(text))
		e.Merged = nil
		for _, cut := range cuts {
			e.Body = Text{text[from:cut]}
			out = append(out, e)
			from = cut
			e.Seq++
		}
	}
	return out
}

// Mergeable reports whether the event may be a part of [MergeText].
func (e Event) Mergeable() bool { return e.Body.Kind() == KindText && e.Foreign == nil }

// After returns the part of the event after a position that its reader has kept, and whether there is
// any: the whole event, or the rest of merged text. An event of a later epoch comes after it whatever its
// number: see [Cursor.Compare].
func (e Event) After(c Cursor) (Event, bool) {
	switch {
	case e.Epoch > c.Epoch:
		return e, true
	case e.Epoch < c.Epoch:
		return Event{}, false
	}
	return e.AfterSeq(c.Seq)
}

// AfterSeq is After for a log, in which no number comes twice.
func (e Event) AfterSeq(seq uint64) (Event, bool) {
	switch {
	case seq < e.Seq:
		return e, true
	case seq >= e.End():
		return Event{}, false
	}
	n := int(seq - e.Seq) // the pieces up to and including n are known
	cut, text := e.Merged.Cuts[n], e.Body.(Text).Text
	rest := make([]int, 0, len(e.Merged.Cuts)-n-1)
	for _, c := range e.Merged.Cuts[n+1:] {
		rest = append(rest, c-cut)
	}
	e.Seq, e.Body, e.Merged = seq+1, Text{text[cut:]}, nil
	if len(rest) > 0 {
		e.Merged = &Merged{rest}
	}
	return e, true
}
