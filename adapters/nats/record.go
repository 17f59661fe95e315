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

// A message of the stream has events of tasks, each as a line of stable JSON. A line that
// names a task comes before its events. A long message is sent in parts, with headers.
const (
	bytesHeader = "Dragoman-Bytes" // how long the data is: no checksum covers where it begins
	partHeader  = "Dragoman-Part"  // the number of the part, from 0
	partsHeader = "Dragoman-Parts" // the number of parts
)

// taskLine begins a line that names a task; the id and endOfTask follow.
const (
	taskLine  = `{"task":"`
	endOfTask = `"}` + "\n"
)

// slotDigits is how many characters of their ids tasks of the same subject share: in a
// UUID of version 7 these give the time in units of 4096 ms.
const slotDigits = 10

// slot returns the last token of the subject of a task.
func slot(task core.TaskID) string { return string(task[:min(len(task), slotDigits)]) }

// runs splits records into runs of the same slot that make a message of about runBytes.
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

// runBytes is about the largest size of a message of several records.
const runBytes = 64 << 10

// encode appends to msgs the messages of a run of records: one, or several parts. Their
// data is appended to buf.
func encode(msgs []*nats.Msg, buf []byte, subject string, run []journal.Record, part int) ([]*nats.Msg, []byte, error) {
	before, began := len(msgs), len(buf)
	for i, r := range run {
		if i > 0 {
			buf = append(buf, '\n')
		}
		if i == 0 || r.Task != run[i-1].Task {
			if !plain(r.Task) {
				return nil, nil, fmt.Errorf("the id of task %q cannot be written", r.Task)
			}
			buf = append(append(append(buf, taskLine...), r.Task...), endOfTask...)
		}
		var err error
		if buf, err = r.Event.AppendJSON(buf); err != nil {
			return nil, nil, fmt.Errorf("encoding event %d of task %s: %w", r.Event.Seq, r.Task, err)
		}
		if buf, err = appendRights(buf, r.Event.Body); err != nil {
			return nil, nil, fmt.Errorf("encoding who opened task %s: %w", r.Task, err)
		}
	}
	data := buf[began:]
	parts := (len(data) + part - 1) / part
	for p := range slices.Chunk(data, part) {
		m := &nats.Msg{Subject: subject, Data: p}
		if parts > 1 {
			m.Header = nats.Header{bytesHeader: {strconv.Itoa(len(p))}, partHeader: {strconv.Itoa(len(msgs) - before)}, partsHeader: {strconv.Itoa(parts)}}
		}
		msgs = append(msgs, m)
	}
	return msgs, buf, nil
}

// tasks yields the lines of a whole message task by task.
func tasks(data []byte) func(yield func(core.TaskID, []byte) bool) {
	return func(yield func(core.TaskID, []byte) bool) {
		var task core.TaskID
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

// errNoTask is the error of events without a valid task id before them.
var errNoTask = errors.New("it names no task")

// decode reads events, one on each line: at least one, or an error.
func decode(lines []byte) ([]core.Event, error) {
	var events []core.Event
	for line := range bytes.SplitSeq(lines, []byte{'\n'}) {
		var e core.Event
		if err := e.UnmarshalJSON(line); err != nil { // which json.Unmarshal calls only after a pass over the line
			return nil, err
		}
		if err := readRights(line, &e); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// rightsMember is the last member of the line of a first event, if the credential of the requester
// says more than its name. It is for the hub that takes the task over: the form of the event that
// readers get does not have it.
const rightsMember = `,"rights":`

// rights are what a credential says.
type rights struct {
	Kind   core.PrincipalKind `json:"kind,omitzero"`
	Roles  []string           `json:"roles,omitempty"`
	Agents []string           `json:"agents,omitempty"`
	Packs  []string           `json:"packs,omitempty"`
}

// appendRights adds the rights of the requester to the line of a first event.
func appendRights(line []byte, body core.Body) ([]byte, error) {
	opened, ok := body.(core.Opened)
	if !ok || opened.From.Credential == nil {
		return line, nil
	}
	text, err := json.Marshal(rights(*opened.From.Credential))
	return append(append(append(line[:len(line)-1], rightsMember...), text...), '}'), err
}

// readRights gives the requester of a first event the rights that the line has.
func readRights(line []byte, e *core.Event) error {
	opened, ok := e.Body.(core.Opened)
	if !ok || !bytes.Contains(line, []byte(rightsMember)) {
		return nil
	}
	var has struct{ Rights *rights }
	if err := json.Unmarshal(line, &has); err != nil || has.Rights == nil {
		return err
	}
	c := core.Credential(*has.Rights)
	opened.From.Credential = &c
	e.Body = opened
	return nil
}

// plain reports whether the id can be a token of a subject, and be quoted without escapes.
func plain(task core.TaskID) bool {
	return task != "" && !strings.ContainsAny(string(task), ".*> \t\r\n\"\\")
}

// isPart reports whether a message is a part of a long one, as it was written. Before there was a header for that,
// none told how long its data is.
func (m message) isPart() bool {
	size := m.header.Get(bytesHeader)
	if m.header.Get(partsHeader) == "" || bytes.IndexByte(m.data, '\r') >= 0 { // which is in headers alone
		return false
	}
	return size == "" || size == strconv.Itoa(len(m.data))
}

// assembly joins the parts of long messages. It drops messages that lost parts to retention.
type assembly struct {
	data       []byte
	next, want int
}

// add adds the next message and returns the one that is complete with it, if any.
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
