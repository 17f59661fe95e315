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

// Journal keeps the events of tasks. All methods may be called concurrently; the records
// of one task are appended by one goroutine at a time.
type Journal interface {
	// Append writes records in the order given and returns once all of them are as safe as
	// the journal's sync policy promises. Records of one task come in sequence, without
	// holes. After an error none, some or all were written; appending them again is
	// harmless.
	Append(ctx context.Context, records ...Record) error

	// Read returns the events of a task with sequence numbers greater than after, in
	// order, and at most limit of them unless that is 0 or less. It returns ErrUnknown if
	// nothing of the task is kept. It returns a *GapError together with the events if some
	// are missing: before the first of them or, if records were damaged, between them.
	// The error names the first gap.
	Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error)

	// Heads calls yield for every task that has no end and at least the [LatestHeads] others that ended
	// last, ordered by id, until yield returns false.
	Heads(ctx context.Context, yield func(Head) bool) error

	// CompleteTasks calls yield with the events of each given task that is kept from its
	// first event to its end, until yield returns false. It skips other tasks. The order is
	// about that in which the tasks ended.
	CompleteTasks(ctx context.Context, tasks []core.TaskID, yield func(core.TaskID, []core.Event) bool) error

	// Health returns nil while records can be written, as far as is known without writing
	// one. Otherwise the error tells operators why not and what to do. It does not block.
	Health() error

	// Close writes what is pending and closes the journal.
	Close() error
}

// Replicated is a [Journal] that may be kept on several servers.
type Replicated interface {
	Journal
	// IsTemporary reports whether an error is one for a moment, as during an election: what failed
	// with it may be repeated.
	IsTemporary(error) bool
}

// LatestHeads is how many tasks with an end [Journal.Heads] yields at least, if there are so many. A hub that
// starts needs the latest 1<<16 to have begun, which may have ended in another order.
const LatestHeads = 1<<16 + 1<<14

// Head is how much the journal has of a task.
type Head struct {
	Task core.TaskID
	// Thread is [ThreadOf] its first event; "" if that is missing. ThreadTask reports that the journal has
	// something of the task with the id of the thread, which is the one that it began with.
	Thread     core.ThreadID
	ThreadTask bool
	// Key is that of its first event, and From the id of its requester; "" if that is missing, or has no key.
	Key, From string
	// End is the kind of the event that ended the task, and At its time; zero if the
	// journal has no end.
	End core.Kind
	At  time.Time
	// Last is the last event of a task that has not ended. It has no body if only the
	// existence of the task is known.
	Last core.Event
	// Damaged reports that records after Last were lost, perhaps the end among them.
	Damaged bool
}

// ThreadOf returns the thread of a task by its first event; "" for a notice, which belongs
// to none.
func ThreadOf(first core.Event) core.ThreadID {
	if o, ok := first.Body.(core.Opened); ok && o.Request.Intent != core.IntentNotify {
		return o.Request.Thread
	}
	return ""
}

// ErrUnknown reports that the journal has nothing of a task.
var ErrUnknown = errors.New("the journal has nothing of the task")

// GapError reports that events of a task are missing: retention dropped them, or their
// records were damaged.
type GapError struct {
	Task core.TaskID
	// From and To are the first and the last missing sequence number.
	From, To uint64
}

// Error implements error.
func (g *GapError) Error() string {
	return fmt.Sprintf("task %s: events %d to %d are no longer kept", g.Task, g.From, g.To)
}
