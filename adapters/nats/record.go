package nats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// A message of the stream has one or more events of a task, each as a line of its
// stable JSON, or a part of that, which its headers tell.
const (
	partHeader  = "Dragoman-Part"  // which, from 0
	partsHeader = "Dragoman-Parts" // of how many
)

// runs yields the records of one task that stand in a row, as many as make a
// message of moderate size.
func runs(records []journal.Record) func(yield func([]journal.Record) bool) {
	return func(yield func([]journal.Record) bool) {
		for len(records) > 0 {
			n, size := 0, 0
			for n < len(records) && records[n].Task == records[0].Task && (n == 0 || size < runBytes) {
				size += records[n].Event.Size()
				n++
			}
			if !yield(records[:n]) {
				return
			}
			records = records[n:]
		}
	}
}

// runBytes is about how large a message of several events grows.
const runBytes = 64 << 10

// encode appends to msgs the messages of a run of records of one task: one with an event
// a line, or as many parts as its size takes. Their data is appended to room. What is
// appended again is dropped by Read.
func encode(msgs []*nats.Msg, room []byte, subject string, run []journal.Record, part int) ([]*nats.Msg, []byte, error) {
	before, began := len(msgs), len(room)
	for i, r := range run {
		if i > 0 {
			room = append(room, '\n')
		}
		var err error
		if room, err = r.Event.AppendJSON(room); err != nil {
			return nil, nil, fmt.Errorf("encoding event %d of task %s: %w", r.Event.Seq, r.Task, err)
		}
	}
	data := room[began:]
	parts := (len(data) + part - 1) / part
	for p := range slices.Chunk(data, part) {
		m := &nats.Msg{Subject: subject, Data: p}
		if parts > 1 {
			m.Header = nats.Header{partHeader: {strconv.Itoa(len(msgs) - before)}, partsHeader: {strconv.Itoa(parts)}}
		}
		msgs = append(msgs, m)
	}
	return msgs, room, nil
}

// decode reads the events of a whole message: at least one, or an error.
func decode(data []byte) ([]core.Event, error) {
	var events []core.Event
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		var e core.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// plain reports whether the id can be a part of a subject.
func plain(task core.TaskID) bool {
	return task != "" && !strings.ContainsAny(string(task), ".*> \t\r\n")
}

// assembly puts the parts of long messages together. A message that lost parts to
// retention is dropped.
type assembly struct {
	data       []byte
	next, want int
}

// add takes the next message of a task and returns what is whole with it.
func (a *assembly) add(header nats.Header, data []byte) (whole []byte, ok bool) {
	parts := header.Get(partsHeader)
	if parts == "" {
		return data, true
	}
	total, err1 := strconv.Atoi(parts)
	i, err2 := strconv.Atoi(header.Get(partHeader))
	if err1 != nil || err2 != nil {
		return nil, false
	}
	if i == 0 {
		*a = assembly{want: total}
	}
	if i != a.next || total != a.want {
		return nil, false
	}
	a.data, a.next = append(a.data, data...), i+1
	return a.data, a.next == total
}
