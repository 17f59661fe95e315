package remote

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// remains are what a hub whose life was taken over has left in the journal, for lists: its tasks. It is
// read when somebody lists tasks, once all of them have their ends, and kept until the hub is back.
type remains struct {
	hub    string
	shared journal.Shared

	reading chan struct{} // holds a token while somebody uses what follows
	tasks   *task.Store   // nil until they were read
	threads *thread.Index
}

// remainsTime is how long reading the heads of all tasks of a hub may take.
const remainsTime = 10 * time.Second

func newRemains(hub string, shared journal.Shared) *remains {
	return &remains{hub: hub, shared: shared, reading: make(chan struct{}, 1)}
}

// tasksOf answers a list of tasks in the place of a hub that is gone.
func (r *Hubs) tasksOf(ctx context.Context, name string, q rpc.Request) (json.RawMessage, error) {
	r.Lock()
	l := r.remains[name]
	r.Unlock()
	if l == nil {
		return nil, core.NewFault(core.CodeUnreachable, "hub %s is not here", name)
	}
	ctx, cancel := context.WithTimeout(ctx, remainsTime)
	defer cancel()
	tasks, threads, err := l.read(ctx, r.Port)
	if err != nil {
		return nil, err
	}
	return r.List(ctx, q, tasks, threads)
}

// read returns the tasks, which it reads from the journal the first time.
func (l *remains) read(ctx context.Context, p hub.Port) (*task.Store, *thread.Index, error) {
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if l.tasks != nil {
		return l.tasks, l.threads, nil
	}
	if l.shared == nil {
		return nil, nil, core.NewFault(core.CodeUnreachable, "this hub has no journal with others")
	}
	tasks, threads, open := task.NewStore(task.Limits{}, p.Host(), partOf{l.shared, l.hub}), thread.NewIndex(thread.IndexTasks), 0
	err := l.shared.HeadsOf(ctx, l.hub, func(head journal.Head) bool {
		if head.End == 0 {
			if r, ok := head.Last.Body.(core.Retrying); !ok || r.Hub == "" { // else it has moved: its owner lists it
				open++
			}
			return true
		}
		tasks.Recover(head.Task, head.End, head.At)
		if head.Thread != "" {
			threads.Add(head.Thread, head.Task, thread.Unknown)
		}
		return true
	})
	switch {
	case err != nil:
		return nil, nil, err
	case open > 0:
		return nil, nil, core.NewFault(core.CodeUnreachable, "%d tasks of hub %s do not have their ends yet", open, l.hub)
	}
	l.tasks, l.threads = tasks, threads
	return tasks, threads, nil
}

// partOf is the part of another hub in the journal.
type partOf struct {
	journal.Shared
	hub string
}

// Read implements [journal.Journal].
func (p partOf) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	return p.ReadOf(ctx, p.hub, id, after, limit)
}
