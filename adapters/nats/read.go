package nats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Read implements journal.Journal. It goes through what its subject has from when the
// task began to its end; where not all of that is found there, from the start.
func (j *Journal) Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if !plain(task) {
		return nil, journal.ErrUnknown
	}
	j.reopening.RLock()
	defer j.reopening.RUnlock()
	r := reading{task: task, after: after, limit: limit}
	subject, from := j.prefix+slot(task), uint64(1)
	if j.old {
		if err := j.read(ctx, &r, j.former+string(task), 1); err != nil {
			return nil, err
		}
	}
	if r.seen == 0 { // what began there may have ended at any time
		from = j.since(ctx, subject, task)
	}
	err := j.read(ctx, &r, subject, from)
	if err == nil && from > 1 && !r.whole {
		r = reading{task: task, after: after, limit: limit}
		err = j.read(ctx, &r, subject, 1)
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

// patience is how long a read waits to be told where a task began, which only makes it
// quicker.
const patience = time.Second

// since returns where in the stream a subject goes on after the time that the id of a
// task tells; 1 when it tells none, or there is nothing.
func (j *Journal) since(ctx context.Context, subject string, task core.TaskID) uint64 {
	begun, ok := task.Begun()
	if !ok {
		return 1
	}
	ask, err := json.Marshal(struct {
		At      time.Time `json:"start_time"`
		Subject string    `json:"next_by_subj"`
	}{begun, subject})
	if err != nil {
		return 1
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := j.conn.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"DIRECT.GET."+j.stream.CachedInfo().Config.Name, ask)
	if err != nil {
		return 1
	}
	place, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return 1
	}
	return place
}

// reading is what was found of a task so far.
type reading struct {
	task   core.TaskID
	after  uint64
	limit  int
	found  []core.Event // as they stand in the store
	wanted int          // how many of them are
	seen   uint64       // up to where events are known; 0 before there are any
	hole   bool         // some before those are not, or stand behind them
	whole  bool         // nothing more is wanted
}

// read looks for the task in what a subject has from a place in the stream on.
func (j *Journal) read(ctx context.Context, r *reading, subject string, from uint64) error {
	var parts assembly
	for filter := jetstream.WithGetMsgSubject(subject); !r.whole; {
		m, err := j.stream.GetMsg(ctx, from, filter)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading task %s from the journal: %w", r.task, err)
		}
		from = m.Sequence + 1
		data, whole := parts.add(m.Header, m.Data)
		if !whole {
			continue
		}
		for task, lines := range tasks(data, j.taskOf(m.Subject)) {
			if !plain(task) {
				return unreadable(m.Sequence, r.task, errNoTask)
			}
			if task != r.task {
				continue
			}
			events, err := decode(lines)
			if err != nil {
				return unreadable(m.Sequence, task, err)
			}
			r.add(events)
		}
	}
	return nil
}

// add takes in the next events of the task. What was appended again, after an error with
// which the first of several messages was lost, stands behind what came after it.
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

// events returns those that are wanted, in order, each once.
func (r *reading) events() (out []core.Event) {
	if r.hole {
		slices.SortStableFunc(r.found, func(a, b core.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	seen := r.after
	for _, e := range r.found {
		if rest, ok := e.After(seen); ok && (r.limit <= 0 || len(out) < r.limit) {
			out, seen = append(out, rest), rest.End()
		}
	}
	return out
}

// unreadable says of a message that it is none of ours.
func unreadable(sequence uint64, task core.TaskID, err error) error {
	return fmt.Errorf("message %d of the journal, of task %s, cannot be read (is it of another version, or of another program?): %w", sequence, task, err)
}
