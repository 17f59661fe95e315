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
	from := j.tasks.since(ctx, j.tasks.prefix+slot(first), first)
	c := completing{left: left, yield: yield}
	var parts assembly
	err := j.tasks.replay(ctx, from, "the journal", func(m message) (bool, error) {
		if m.owner {
			return true, nil
		}
		data, whole := parts.add(m.header, m.data)
		if !whole {
			return true, nil
		}
		for task, lines := range tasks(data) {
			if !c.add(task, lines) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil || c.over {
		return err
	}
	return j.completeOthers(ctx, wanted, left, yield)
}

// completeOthers reads those of the tasks that are left one by one: records were appended again, or the clock was
// set back.
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

// completing gathers the events of tasks that are read together.
type completing struct {
	left  map[core.TaskID][]byte // the lines so far of those that are not complete
	yield func(core.TaskID, []core.Event) bool
	over  bool // yield wants no more
}

// add adds lines of a task, which is complete with its end. It reports whether more lines are wanted.
func (c *completing) add(task core.TaskID, lines []byte) bool {
	known, is := c.left[task]
	if !is {
		return true
	}
	last := lines[bytes.LastIndexByte(lines, '\n')+1:]
	if end, _, err := endOf(last); err == nil && end == 0 {
		c.left[task] = append(append(known, lines...), '\n')
		return true
	}
	if events, err := decode(append(known, lines...)); err == nil && follows(events) {
		delete(c.left, task)
		c.over = !c.yield(task, events)
	}
	return !c.over && len(c.left) > 0
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
