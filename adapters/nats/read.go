package nats

import (
	"bytes"
	"cmp"
	"context"
	"errors"
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
// task began to its end and, if that is not found, what is before: the clocks of two hubs differ, or one was set back.
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
	first, err := h.collect(ctx, &r, since(task), math.MaxUint64)
	if err == nil && !r.whole {
		_, err = h.collect(ctx, &r, time.Time{}, first-1)
	}
	if err != nil {
		return nil, fmt.Errorf("reading task %s from the journal: %w", task, err)
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

// since returns the time at which a task began; zero if its id has none.
func since(task core.TaskID) time.Time {
	begun, _ := task.Begun()
	return begun
}

// collect collects events of a task from what was stored since a time, up to the place last. It returns the place of
// the first message of the subject.
func (h *hubTasks) collect(ctx context.Context, r *reading, from time.Time, last uint64) (first uint64, err error) {
	first = math.MaxUint64
	ask := getRequest{At: from, Next: h.prefix + slot(r.task), Batch: taskMessages, Bytes: taskBytes}
	for l, err := range lines(h.messages(ctx, ask, last)) {
		if err == nil && l.task == r.task {
			err = r.add(l)
		}
		if err != nil {
			return first, err
		}
		if first = min(first, l.place); r.whole {
			break
		}
	}
	return first, nil
}

// taskMessages is the first batch of messages that are read for a task. Most tasks are in one message, or
// in a few; but a subject has those of other tasks, too.
const taskMessages = 1

// taskBytes bounds each batch of messages that are read for a task.
const taskBytes = 512 << 10

// reading collects the events of a task.
type reading struct {
	task   core.TaskID
	after  uint64
	limit  int
	found  []core.Event
	wanted int    // how many of them are after after
	seen   uint64 // the last sequence number found; 0 before there are any
	hole   bool   // earlier ones are missing, or come later in the store
	whole  bool   // nothing more is wanted
}

// places has one for each read of a task that goes on, and for no more: a server sends the answers to all of
// them one after the other, and keeps in memory what it has not sent.
type places chan struct{}

// maxReads is how many tasks are read at the same time. With more it is no faster, and each waits longer for
// the first message.
const maxReads = 4

// maxOtherReads is the same for those of other hubs. When one of them is lost, all tasks that ran there are read at
// once, and the reads wait most of the time for answers that do not come.
const maxOtherReads = 16

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

// add adds the next events of the task. Events that were appended again, after an error
// that lost the first of several messages, come after later ones.
func (r *reading) add(l taskLines) error {
	events, err := decode(l.text)
	if err != nil {
		return l.unreadable(err)
	}
	for _, e := range events {
		r.hole = r.hole || e.Seq > r.seen+1
		if e.End() > max(r.after, r.seen) {
			r.wanted++
		}
		r.seen = max(r.seen, e.End())
		r.found = append(r.found, e)
		r.whole = !r.hole && (r.whole || e.Body.Kind().Ends() || r.limit > 0 && r.wanted >= r.limit)
	}
	return nil
}

// events returns the wanted events in order, each once.
func (r *reading) events() (out []core.Event) {
	slices.SortStableFunc(r.found, func(a, b core.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	seen := r.after
	for _, e := range r.found {
		if rest, ok := e.AfterSeq(seen); ok && (r.limit <= 0 || len(out) < r.limit) {
			out, seen = append(out, rest), rest.End()
		}
	}
	return out
}

// CompleteTasks implements journal.Journal. It reads the stream once, from where the first of
// the tasks began, and then one by one what that did not find: records that were appended again, or tasks from
// before the clock was set back.
func (j *Journal) CompleteTasks(ctx context.Context, wanted []core.TaskID, yield func(core.TaskID, []core.Event) bool) error {
	if len(wanted) == 0 {
		return nil
	}
	left := make(map[core.TaskID][]byte, len(wanted)) // the lines so far of those that have no end yet
	for _, task := range wanted {
		left[task] = nil
	}
	for l, err := range lines(j.tasks.replay(ctx, getRequest{At: since(slices.Min(wanted))}, 0, nil)) {
		if err != nil {
			return err
		}
		before, is := left[l.task]
		if !is {
			continue
		}
		l.text = append(before, l.text...)
		if end, _, err := endOf(l.text[bytes.LastIndexByte(l.text, '\n')+1:]); end == 0 || err != nil {
			left[l.task] = append(l.text, '\n')
			continue
		}
		var r reading
		if r.add(l) != nil || !r.whole {
			continue
		}
		if delete(left, l.task); !yield(l.task, r.events()) || len(left) == 0 {
			return nil
		}
	}
	return j.completeOthers(ctx, wanted, left, yield)
}

// completeOthers is CompleteTasks for those of the tasks that are left, one by one.
func (j *Journal) completeOthers(ctx context.Context, wanted []core.TaskID, left map[core.TaskID][]byte, yield func(core.TaskID, []core.Event) bool) error {
	for _, task := range wanted {
		if _, is := left[task]; !is {
			continue
		}
		events, err := j.Read(ctx, task, 0, 0)
		var gap *journal.GapError
		switch {
		case errors.Is(err, journal.ErrUnknown) || errors.As(err, &gap):
		case err != nil:
			return err
		case events[len(events)-1].Body.Kind().Ends() && !yield(task, events):
			return nil
		}
	}
	return nil
}

// unreadable returns the error of a message that the hub did not write.
func (l taskLines) unreadable(err error) error {
	return fmt.Errorf("message %d of the journal, of task %s, cannot be read (is it of another version, or of another program?): %w", l.place, l.task, err)
}

// unreadable is the same for a message of another stream.
func (f *fence) unreadable(m message, err error) error {
	return fmt.Errorf("message %d of the stream %s cannot be read (is it of another version, or of another program?): %w", m.place, f.stream, err)
}
