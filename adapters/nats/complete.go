package nats

import (
	"bytes"
	"context"
	"errors"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// CompleteTasks implements journal.Journal. It reads the stream once, from where the first of
// the tasks began.
func (j *Journal) CompleteTasks(ctx context.Context, wanted []core.TaskID, yield func(core.TaskID, []core.Event) bool) error {
	if len(wanted) == 0 {
		return nil
	}
	first, left := wanted[0], make(map[core.TaskID][]byte, len(wanted))
	for _, task := range wanted {
		first, left[task] = min(first, task), nil
	}
	from := uint64(1)
	if !j.tasks.old {
		from = j.tasks.since(ctx, j.tasks.prefix+slot(first), first)
	}
	var parts assembly
	more := true
	err := j.tasks.replay(ctx, from, "the journal", func(m message) (bool, error) {
		if m.owner {
			return true, nil
		}
		data, whole := parts.add(m.header, m.data)
		if !whole {
			return true, nil
		}
		for task, lines := range tasks(data, j.tasks.taskOf(m.subject)) {
			known, is := left[task]
			if !is {
				continue
			}
			last := lines[bytes.LastIndexByte(lines, '\n')+1:]
			if end, _, err := endOf(last); err == nil && end == 0 {
				left[task] = append(append(known, lines...), '\n')
				continue
			}
			if events, err := decode(append(known, lines...)); err == nil && follows(events) {
				delete(left, task)
				more = yield(task, events)
			}
			if !more || len(left) == 0 {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil || !more {
		return err
	}
	for _, task := range wanted { // if records were appended again, or the clock was set back
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

// follows reports whether the events have no gap, from the first on.
func follows(events []core.Event) bool {
	seen := uint64(0)
	for _, e := range events {
		if e.Seq != seen+1 {
			return false
		}
		seen = e.End()
	}
	return true
}
