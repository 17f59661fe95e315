package hub

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// closeOpen returns records that end tasks which were cut off, each after those that end its open
// tool calls and questions. read reads what the journal has of a task; one that cannot be read gets its end alone.
func closeOpen(ctx context.Context, ends []journal.Record, read func(context.Context, core.TaskID) ([]core.Event, error)) (all []journal.Record) {
	open := make([][]core.Body, len(ends))
	eachAtOnce(ends, func(i int, r journal.Record) {
		events, _ := read(ctx, r.Task) // also those beside a gap
		open[i] = task.Closing(slices.Values(events), r.Event.Body)
	})
	for i, r := range ends {
		for _, b := range open[i] {
			closed := r
			closed.Event.Body = b
			all = append(all, closed)
			r.Event.Seq++
		}
		all = append(all, r)
	}
	return all
}

// readStored returns what the hubs have stored of a task, without what is missing.
func (h *Hub) readStored(ctx context.Context, id core.TaskID) ([]core.Event, error) {
	if h.shared == nil {
		return nil, journal.ErrUnknown
	}
	events, _, err := h.stored(ctx, id)
	return events, err
}
