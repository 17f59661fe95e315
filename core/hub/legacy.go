package hub

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// legacy is what a hub whose life was taken over has left in the journal, for lists: its tasks. It is
// read when somebody lists tasks, once all of them have their ends, and kept until the hub is back.
type legacy struct {
	hub    string
	shared journal.Shared
	since  time.Time // when this hub knew that its life was taken over

	reading chan struct{} // holds a token while somebody uses what follows
	tasks   *task.Store   // nil until they were read
	threads *thread.Index
}

// legacyTime is how long reading the heads of all tasks of a hub may take.
const legacyTime = 10 * time.Second

func newLegacy(hub string, shared journal.Shared) *legacy {
	return &legacy{hub: hub, shared: shared, since: time.Now(), reading: make(chan struct{}, 1)}
}

// legacies returns those of all hubs that are gone, in the order of their names.
func (h *Hub) legacies() []*legacy {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Values(h.others.legacies), func(a, b *legacy) int { return strings.Compare(a.hub, b.hub) })
}

// tasksLeft lists the tasks of a hub that is gone.
func (h *Hub) tasksLeft(ctx context.Context, p core.Principal, l *legacy, f task.Filter) (TaskPage, error) {
	ctx, cancel := context.WithTimeout(ctx, legacyTime)
	defer cancel()
	tasks, threads, err := l.read(ctx, host{h})
	if err != nil {
		return TaskPage{}, err
	}
	return h.page(ctx, p, f, tasks, threads, nil)
}

// read returns the tasks, for the host, which it reads from the journal the first time.
func (l *legacy) read(ctx context.Context, h host) (*task.Store, *thread.Index, error) {
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
	tasks, threads, open := task.NewStore(task.Limits{}, h, partOf{l.shared, l.hub}), thread.NewIndex(thread.IndexTasks), 0
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
