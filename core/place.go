package core

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Place is a position in a thread: everything up to and including Cursor of Task, and every
// task before it, was read. Its text is opaque to peers; a later position in a thread has a
// greater text. The zero Place is the beginning.
type Place struct {
	Task   TaskID
	Cursor Cursor
}

// PlaceAfter returns the position after an event of a task.
func PlaceAfter(task TaskID, e Event) Place { return Place{task, e.Cursor()} }

// String returns the text form that peers send back; "" of the zero Place.
func (p Place) String() string {
	if p.Task == "" {
		return ""
	}
	return fmt.Sprintf("%s.%08x.%016x", p.Task, p.Cursor.Epoch, p.Cursor.Seq)
}

// Compare compares two positions in a thread, whose tasks are in the order of their ids.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Task, q.Task), p.Cursor.Compare(q.Cursor))
}

// ParsePlace reads the text form; an empty text is the zero Place. It returns an
// invalid Fault for anything that String does not write.
func ParsePlace(text string) (Place, error) {
	if text == "" {
		return Place{}, nil
	}
	task, rest, _ := strings.Cut(text, ".")
	epoch, seq, _ := strings.Cut(rest, ".")
	e, err1 := strconv.ParseUint(epoch, 16, 32)
	s, err2 := strconv.ParseUint(seq, 16, 64)
	p := Place{TaskID(task), Cursor{Epoch: uint32(e), Seq: s}}
	if err1 != nil || err2 != nil || e == 0 || s == 0 || len(task) > MaxIDBytes || p.String() != text {
		return Place{}, NewFault(CodeInvalid, "%.64q is not a position in a conversation: send the id of an event as this hub gave it", text)
	}
	return p, nil
}
