package nats

import (
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// openTasks knows where the last events of the tasks are that have no end in a stream: who takes the
// stream over reads it from the first of these on. fence.mu guards it. A nil one knows nothing.
type openTasks struct {
	hub  string
	last map[core.TaskID]uint64 // the message with the last event of a task, or one before it
	// whole says that the tasks of former lives are among them.
	whole bool
}

// ownerBytes is how much is written to the tasks of a hub in a cluster until the owner is written
// again, with the place of the first open task: so much, and what came since that task, is what a
// takeover reads.
const ownerBytes = 16 << 20

// storing notes records that are about to be stored, at a place or after it: they may be stored although
// that fails.
func (o *openTasks) storing(records []journal.Record, place uint64) {
	if o == nil {
		return
	}
	for i, r := range records {
		if i > 0 && records[i-1].Task == r.Task {
			continue
		}
		if _, known := o.last[r.Task]; !known {
			o.last[r.Task] = place
		}
	}
}

// stored notes records that are stored, at a place or after it.
func (o *openTasks) stored(records []journal.Record, place uint64) {
	if o == nil {
		return
	}
	for i, r := range records {
		switch {
		case i+1 < len(records) && records[i+1].Task == r.Task:
		case o.closes(r.Event):
			delete(o.last, r.Task)
		default:
			o.last[r.Task] = place
		}
	}
}

// closes reports whether the last event of a task leaves nothing to do for who takes the stream over.
func (o *openTasks) closes(last core.Event) bool {
	moved, _ := last.Body.(core.Retrying)
	return last.Body.Kind().Ends() || moved.Hub != "" && moved.Hub != o.hub
}

// former adds the open tasks of former lives, whose last events are at a place or after it.
func (o *openTasks) former(all heads, place uint64) {
	for task, d := range all.of {
		if d.end != 0 {
			continue
		}
		var last core.Event
		if strings.Contains(d.last, `"kind":"retrying"`) && last.UnmarshalJSON([]byte(d.last)) == nil && o.closes(last) {
			continue
		}
		if _, known := o.last[task]; !known {
			o.last[task] = place
		}
	}
	o.whole = true
}

// first returns the place from which on a takeover has to read, where nothing is stored at next yet. It
// is that of the life before while the tasks of former lives are not known.
func (o *openTasks) first(next, before uint64) uint64 {
	if !o.whole {
		return before
	}
	for _, place := range o.last {
		next = min(next, place)
	}
	return next
}
