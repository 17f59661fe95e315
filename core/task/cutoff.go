package task

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// EndOf returns the end of a task that was cut off, in a new epoch.
func EndOf(head journal.Head, why *core.Fault) journal.Record {
	return journal.Record{Task: head.Task, Event: core.Event{
		Seq: head.Last.End() + 1, Epoch: head.Last.Epoch + 1, At: time.Now(), Body: core.Failed{Fault: why},
	}}
}

// CloseOpen returns records that end tasks which were cut off, each after those that end its open
// tool calls and questions. read reads what the journal has of a task; one that cannot be read gets its end alone.
func CloseOpen(ctx context.Context, ends []journal.Record, read func(context.Context, core.TaskID) ([]core.Event, error)) (all []journal.Record) {
	open := make([][]core.Body, len(ends))
	EachAtOnce(ends, func(i int, r journal.Record) {
		events, _ := read(ctx, r.Task) // also those beside a gap
		open[i] = Closing(slices.Values(events), r.Event.Body)
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

// readsAtOnce is how many tasks are read in the journal at once: a request that goes to a server which is gone takes
// its time, and the readers of all of them wait.
const readsAtOnce = 16

// EachAtOnce calls do for each of all, for some of them at once, and waits.
func EachAtOnce[T any](all []T, do func(i int, one T)) {
	var reading sync.WaitGroup
	next := make(chan int)
	for range min(readsAtOnce, len(all)) {
		reading.Go(func() {
			for i := range next {
				do(i, all[i])
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	reading.Wait()
}
