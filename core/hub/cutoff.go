package hub

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// closeTools returns records that end tasks which were cut off, each after those that end its open
// tool calls. read reads what the journal has of a task; one that cannot be read gets its end alone.
func closeTools(ctx context.Context, ends []journal.Record, read func(context.Context, core.TaskID) ([]core.Event, error)) (all []journal.Record) {
	open := make([][]core.ToolState, len(ends))
	eachAtOnce(ends, func(i int, r journal.Record) {
		events, _ := read(ctx, r.Task) // also those beside a gap
		open[i] = task.Closing(slices.Values(events), r.Event.Body)
	})
	for i, r := range ends {
		for _, state := range open[i] {
			closed := r
			closed.Event.Body = state
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
