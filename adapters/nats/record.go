package nats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// A message of the stream has events of tasks, each as a line of its stable JSON. A
// line that names a task stands before the events of it. A long message goes in parts,
// which their headers tell.
const (
	partHeader  = "Dragoman-Part"  // which, from 0
	partsHeader = "Dragoman-Parts" // of how many
)

// taskLine is how a line begins that names a task; the id and endOfTask follow.
const (
	taskLine  = `{"task":"`
	endOfTask = `"}` + "\n"
)

// slotDigits is how many characters tasks have in common that share a subject: of a
// UUID of version 7 those of its time but for the last 4096 ms.
const slotDigits = 10

// slot is the last part of the subject of a task.
func slot(task core.TaskID) string { return string(task[:min(len(task), slotDigits)]) }

// runs yields the records that stand in a row and have a slot in common, as many as
// make a message of moderate size.
func runs(records []journal.Record) func(yield func([]journal.Record) bool) {
	return func(yield func([]journal.Record) bool) {
		for len(records) > 0 {
			n, size, common := 0, 0, slot(records[0].Task)
			for n < len(records) && (n == 0 || size < runBytes) && slot(records[n].Task) == common {
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

// encode appends to msgs the messages of a run of records: one, or as many parts as its
// size takes. Their data is appended to room. What is appended again is dropped by Read.
func encode(msgs []*nats.Msg, room []byte, subject string, run []journal.Record, part int) ([]*nats.Msg, []byte, error) {
	before, began := len(msgs), len(room)
	for i, r := range run {
		if i > 0 {
			room = append(room, '\n')
		}
		if i == 0 || r.Task != run[i-1].Task {
			if !plain(r.Task) {
				return nil, nil, fmt.Errorf("the id of task %q cannot be written", r.Task)
			}
			room = append(append(append(room, taskLine...), r.Task...), endOfTask...)
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

// tasks yields the lines of a whole message task by task. task is whose lines they are
// before one names a task: that of the subject, in what was written when each had one.
func tasks(data []byte, task core.TaskID) func(yield func(core.TaskID, []byte) bool) {
	return func(yield func(core.TaskID, []byte) bool) {
		for more := true; more; {
			if rest, named := bytes.CutPrefix(data, []byte(taskLine)); named {
				if id, lines, whole := bytes.Cut(rest, []byte(endOfTask)); whole {
					task, data = core.TaskID(id), lines
				}
			}
			lines := data
			n := bytes.Index(data, []byte("\n"+taskLine))
			if more = n >= 0; more {
				lines, data = data[:n], data[n+1:]
			}
			if !yield(task, lines) {
				return
			}
		}
	}
}

// taskOf is the task that a subject is of, in what was written when each had one; else "".
func (j *Journal) taskOf(subject string) core.TaskID {
	task, former := strings.CutPrefix(subject, j.former)
	if !former {
		return ""
	}
	return core.TaskID(task)
}

// errNoTask is of lines before which no task is named that there can be.
var errNoTask = errors.New("it names no task")

// decode reads events, one a line: at least one, or an error.
func decode(lines []byte) ([]core.Event, error) {
	var events []core.Event
	for line := range bytes.SplitSeq(lines, []byte{'\n'}) {
		var e core.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// plain reports whether the id can be a part of a subject, and stand in quotes.
func plain(task core.TaskID) bool {
	return task != "" && !strings.ContainsAny(string(task), ".*> \t\r\n\"\\")
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
