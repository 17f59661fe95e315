package nats

import (
	"context"
	"iter"

	"github.com/nats-io/nats.go"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// hubTasks are the tasks of a hub, in a stream of its own.
type hubTasks struct {
	*fence
	prefix string // of the subjects, before the slot
	buf    []byte // for the data of the next append
	reads  places
}

// tasksSuffix ends the name of the stream with the tasks of a hub.
const tasksSuffix = "-tasks"

// tasksOf returns the tasks of a hub. Its fence knows nothing of the stream yet.
func (j *Journal) tasksOf(hub string) *hubTasks {
	return &hubTasks{
		fence:  &fence{j: j, stream: hub + tasksSuffix, own: hub + ownSuffix, keep: journal.Retention{}.Or()},
		prefix: hub + ".begun.", reads: j.otherReads,
	}
}

// maxBuf is the largest capacity of buf that is kept.
const maxBuf = 1 << 20

// append writes records. Those of tasks that began together share messages.
func (h *hubTasks) append(ctx context.Context, records []journal.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var msgs []*nats.Msg
	buf := h.buf[:0]
	for run := range runs(records) {
		var err error
		if msgs, buf, err = encode(msgs, buf, h.prefix+slot(run[0].Task), run, h.j.part); err != nil {
			return err
		}
	}
	if len(msgs) == 0 {
		return nil
	}
	if cap(buf) <= maxBuf {
		h.buf = buf // the connection copies what it publishes
	}
	place := h.place + 1
	h.open.storing(records, place)
	if err := h.fence.append(ctx, msgs...); err != nil {
		return err
	}
	h.open.stored(records, place)
	return nil
}

// taskLines are the lines of the events of a task in a message.
type taskLines struct {
	place uint64 // of the message
	task  core.TaskID
	text  []byte
}

// lines yields the lines of all tasks in messages, and an error, which is the last that it yields. A message that has
// none counts as missing.
func lines(messages iter.Seq2[message, error]) iter.Seq2[taskLines, error] {
	return func(yield func(taskLines, error) bool) {
		var parts assembly
		for m, err := range messages {
			if err != nil {
				yield(taskLines{}, err)
				return
			}
			if !m.isOfTasks() {
				continue // it is damaged, and counts as missing
			}
			data, whole := parts.add(m.header, m.data)
			if !whole {
				continue
			}
			for task, text := range tasks(data) {
				l := taskLines{m.place, task, text}
				if !plain(task) {
					yield(l, l.unreadable(errNoTask))
					return
				}
				if !yield(l, nil) {
					return
				}
			}
		}
	}
}
