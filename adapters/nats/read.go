package nats

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	return j.tasks.read(ctx, task, after, limit)
}

// read is journal.Journal.Read. It reads the subject of the task from the time at which the
// task began to its end, and from the start of the stream if that misses events.
func (h *hubTasks) read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if !plain(task) {
		return nil, journal.ErrUnknown
	}
	if err := h.reads.take(ctx); err != nil {
		return nil, err
	}
	defer h.reads.leave()
	h.j.reopening.RLock()
	defer h.j.reopening.RUnlock()
	r := reading{task: task, after: after, limit: limit}
	subject := h.prefix + slot(task)
	from := h.since(ctx, subject, task)
	err := h.collect(ctx, &r, subject, from)
	if err == nil && from > 1 && !r.whole {
		r = reading{task: task, after: after, limit: limit}
		err = h.collect(ctx, &r, subject, 1)
	}
	if err != nil {
		return nil, err
	}
	if r.seen == 0 {
		return nil, journal.ErrUnknown
	}
	out := r.events()
	for seen, i := after, 0; i < len(out); i++ {
		if out[i].Seq > seen+1 {
			return out, &journal.GapError{Task: task, From: seen + 1, To: out[i].Seq - 1}
		}
		seen = out[i].End()
	}
	return out, nil
}

// lookupTimeout bounds the request for the place where a task began, which only saves
// time.
const lookupTimeout = time.Second

// since returns the place of the first message of a subject after the time in the id of a
// task; 1 if the id has no time, or there is no such message.
func (h *hubTasks) since(ctx context.Context, subject string, task core.TaskID) uint64 {
	begun, ok := task.Begun()
	if !ok {
		return 1
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	m, err := h.j.get(ctx, h.stream, getRequest{At: begun, Next: subject})
	if err != nil {
		return 1
	}
	return m.place
}

// reading collects the events of a task.
type reading struct {
	task   core.TaskID
	after  uint64
	limit  int
	found  []core.Event // in the order of the store
	wanted int          // how many of them are after after
	seen   uint64       // the last sequence number found; 0 before there are any
	hole   bool         // earlier ones are missing, or come later in the store
	whole  bool         // nothing more is wanted
}

// places has one for each read of a task that goes on, and for no more: a server sends the answers to all of
// them one after the other, and keeps in memory what it has not sent.
type places chan struct{}

// maxReads is how many tasks are read at the same time. With more it is no faster, and each waits longer for
// the first message.
const maxReads = 4

// take waits for a place. It returns the cause of ctx when that ends.
func (p places) take(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p places) leave() { <-p }

// taskMessages is the first batch of messages that are read for a task. Most tasks are in one message, or
// in a few; but a subject has those of other tasks, too.
const taskMessages = 1

// taskBytes bounds each batch of messages that are read for a task.
const taskBytes = 512 << 10

// collect collects the events of the task from the messages of a subject, from a place in the
// stream on.
func (h *hubTasks) collect(ctx context.Context, r *reading, subject string, from uint64) error {
	var parts assembly
	each := func(m message) (more bool, err error) {
		data, whole := parts.add(m.header, m.data)
		if !whole {
			return true, nil
		}
		for task, lines := range tasks(data) {
			if !plain(task) {
				return false, unreadable(m.place, r.task, errNoTask)
			}
			if task != r.task {
				continue
			}
			events, err := decode(lines)
			if err != nil {
				return false, unreadable(m.place, task, err)
			}
			r.add(events)
		}
		return !r.whole, nil
	}
	ask := getRequest{Seq: from, Next: subject, Batch: taskMessages, Bytes: taskBytes}
	if err := h.batches(ctx, ask, math.MaxUint64, each); err != nil {
		return fmt.Errorf("reading task %s from the journal: %w", r.task, err)
	}
	return nil
}

// add adds the next events of the task. Events that were appended again, after an error
// that lost the first of several messages, come after later ones.
func (r *reading) add(events []core.Event) {
	for _, e := range events {
		r.hole = r.hole || e.Seq > r.seen+1
		if e.End() > max(r.after, r.seen) {
			r.wanted++
		}
		r.seen = max(r.seen, e.End())
		r.found = append(r.found, e)
		r.whole = !r.hole && (r.whole || e.Body.Kind().Ends() || r.limit > 0 && r.wanted >= r.limit)
	}
}

// events returns the wanted events in order, each once.
func (r *reading) events() (out []core.Event) {
	if r.hole {
		slices.SortStableFunc(r.found, func(a, b core.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	seen := r.after
	for _, e := range r.found {
		if rest, ok := e.AfterSeq(seen); ok && (r.limit <= 0 || len(out) < r.limit) {
			out, seen = append(out, rest), rest.End()
		}
	}
	return out
}

// unreadable returns the error of a message that the hub did not write.
func unreadable(sequence uint64, task core.TaskID, err error) error {
	return fmt.Errorf("message %d of the journal, of task %s, cannot be read (is it of another version, or of another program?): %w", sequence, task, err)
}
