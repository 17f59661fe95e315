package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Record is one event of one task.
type Record struct {
	Task  core.TaskID
	Event core.Event
}

// Journal is the ordered memory of tasks. All methods may be called concurrently;
// the records of one task are appended by one goroutine at a time.
type Journal interface {
	// Append writes records in the order given and returns once all of them
	// survive what the journal's sync policy promises. Records of one task come
	// in the order of their sequence, without holes. After an error none, some or
	// all were written; appending them again is harmless.
	Append(ctx context.Context, records ...Record) error

	// Read returns up to limit events of the task that stand for sequence
	// numbers greater than after, in order; limit <= 0 sets none. It returns
	// ErrUnknown when nothing of the task is kept, and a *GapError beside the
	// events for the first part that is gone from what follows after: in front of
	// them, or, where records were damaged, between them.
	Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error)

	// Heads calls yield for every task, in the order of their ids, until yield
	// returns false.
	Heads(ctx context.Context, yield func(Head) bool) error

	// Stories calls yield with the events of each of the tasks that is kept from its
	// beginning to its end, about in the order in which they ended, until yield returns
	// false. It passes over the others.
	Stories(ctx context.Context, tasks []core.TaskID, yield func(core.TaskID, []core.Event) bool) error

	// Health returns nil while records can be written, as far as is known without
	// writing any. Otherwise it returns why not, and what to do, in a sentence for
	// operators. It does not wait.
	Health() error

	// Close writes up what there is and lets go of the journal.
	Close() error
}

// Head is how far the journal has a task.
type Head struct {
	Task core.TaskID
	// Thread is what [ThreadOf] tells of its first event; "" when that is gone.
	Thread core.ThreadID
	// End is the kind of the end of the task, and At when it ended; zero while the journal
	// has no end.
	End core.Kind
	At  time.Time
	// Last is the last event kept of a task that has not ended. Of one of which only
	// that it was is known it has no body.
	Last core.Event
	// Damaged says that records behind Last were lost, and with them perhaps the end.
	Damaged bool
}

// ThreadOf returns the conversation that a task is a part of, given its first event:
// "" of a notice, which is a part of none.
func ThreadOf(first core.Event) core.ThreadID {
	if o, ok := first.Body.(core.Opened); ok && o.Request.Intent != core.IntentNotify {
		return o.Request.Thread
	}
	return ""
}

// ErrUnknown says that the journal has nothing of a task.
var ErrUnknown = errors.New("the journal has nothing of the task")

// GapError says that a part of a task is gone: it fell to retention, or its records were
// damaged.
type GapError struct {
	Task core.TaskID
	// From and To are the first and the last sequence number that are missing.
	From, To uint64
}

// Error implements error.
func (g *GapError) Error() string {
	return fmt.Sprintf("task %s: events %d to %d are no longer kept", g.Task, g.From, g.To)
}
