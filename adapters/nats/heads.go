package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// head is what is known of a task while the stream is read.
type head struct {
	thread core.ThreadID
	last   []byte // the line of the last event
	place  uint64 // of the message that has it
}

// Heads implements journal.Journal. It reads the stream once, in order.
func (j *Journal) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	heads := map[core.TaskID]head{}
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
			h.last, h.place = bytes.Clone(lines[bytes.LastIndexByte(lines, '\n')+1:]), place.Sequence.Stream
			heads[task] = h
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, task := range slices.Sorted(maps.Keys(heads)) {
		h := heads[task]
		var last core.Event
		if err := json.Unmarshal(h.last, &last); err != nil {
			return unreadable(h.place, task, err)
		}
		if !yield(journal.Head{Task: task, Thread: h.thread, Last: last}) {
			break
		}
	}
	return nil
}
