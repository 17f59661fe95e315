package nats

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// head is what is known of a task while the stream is read.
type head struct {
	thread core.ThreadID
	seq    uint64 // of the last event
	last   []byte // its line; nil where there was no room for it
	place  uint64 // of the message that has it
}

// What is kept of last events until all heads are known: short lines, and of longer ones
// so many bytes. Others are read again.
const (
	shortLine = 512
	longLines = 256 << 20
)

// long is how much of the room for long lines a line takes.
func long(line []byte) int {
	if len(line) <= shortLine {
		return 0
	}
	return len(line)
}

// Heads implements journal.Journal. It reads the stream once, in order.
func (j *Journal) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	heads, room := map[core.TaskID]head{}, j.lines
	var parts assembly
	err := replay(ctx, j.stream, "the journal", func(m jetstream.Msg, place *jetstream.MsgMetadata) (bool, error) {
		data, whole := parts.add(m.Headers(), m.Data())
		if !whole {
			return true, nil
		}
		for task, lines := range tasks(data, j.taskOf(m.Subject())) {
			if !plain(task) {
				return false, errNoTask
			}
			h := heads[task]
			if first, _, _ := bytes.Cut(lines, []byte{'\n'}); bytes.HasPrefix(first, []byte(`{"seq":1,`)) {
				var e core.Event
				if err := json.Unmarshal(first, &e); err != nil {
					return false, fmt.Errorf("task %s: %w", task, err)
				}
				h.thread = journal.ThreadOf(e)
			}
			last := lines[bytes.LastIndexByte(lines, '\n')+1:]
			if seq := seqOf(last); seq == 0 || seq >= h.seq { // else it was appended again, up to here
				room += long(h.last)
				h.seq, h.last, h.place = seq, nil, place.Sequence.Stream
				if size := long(last); size == 0 || size <= room {
					h.last, room = bytes.Clone(last), room-size
				}
			}
			heads[task] = h
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, task := range slices.Sorted(maps.Keys(heads)) {
		h := heads[task]
		last, err := j.lastOf(ctx, task, h)
		if errors.Is(err, journal.ErrUnknown) {
			continue // it fell to retention meanwhile
		}
		if err != nil {
			return err
		}
		if !yield(journal.Head{Task: task, Thread: h.thread, Last: last}) {
			break
		}
	}
	return nil
}

// lastOf returns the last event of a task.
func (j *Journal) lastOf(ctx context.Context, task core.TaskID, h head) (last core.Event, err error) {
	if h.last != nil {
		if err = json.Unmarshal(h.last, &last); err != nil {
			err = unreadable(h.place, task, err)
		}
		return last, err
	}
	events, err := j.Read(ctx, task, h.seq-1, 0)
	if len(events) == 0 {
		return last, cmp.Or(err, journal.ErrUnknown)
	}
	return events[len(events)-1], nil
}

// seqOf returns the sequence number of the event that a line is of; 0 where it is of none.
func seqOf(line []byte) uint64 {
	digits, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte(`{"seq":`)), []byte{','})
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
