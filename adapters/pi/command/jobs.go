package command

import (
	"context"

	"github.com/dragoman-hub/dragoman/core/fifo"
)

// Workers is how many jobs may use the disk at once. Listing files can take long and has
// a worker of its own.
const Workers = 4

// job is work that takes long: it waits for a disk, or reads a conversation.
type job struct {
	do func(context.Context)
	x  *Execution // the command that it is for, or nil
}

// Jobs is a queue of jobs for workers, first in, first out. It is safe for concurrent use.
type Jobs struct{ waiting *fifo.Mailbox[job] }

// NewJobs returns an empty queue.
func NewJobs() *Jobs { return &Jobs{fifo.NewMailbox[job](0, nil)} }

// Add queues a job. Jobs that are queued when the workers' context ends are still done.
func (q *Jobs) Add(do func(context.Context)) { q.waiting.Put(job{do: do}) }

// Work does jobs until the context ends and none is left.
func (q *Jobs) Work(ctx context.Context) {
	for {
		if j, ok := q.waiting.Poll(); ok {
			j.do(ctx)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case <-q.waiting.Ready():
		case <-ctx.Done():
		}
	}
}

// Len returns how many jobs wait.
func (q *Jobs) Len() int { return q.waiting.Len() }
