package thread

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
)

// Index knows the tasks of threads, in the order of their ids. It is bounded: the
// oldest tasks make room, and it says where some may be missing. It is safe for
// concurrent use.
type Index struct {
	limit int

	mu      sync.Mutex
	threads map[core.ThreadID]*contents
	order   fifo.Queue[*contents] // of each task, oldest first
	lost    core.TaskID           // the latest that made room
}

type contents struct {
	id    core.ThreadID
	tasks fifo.Queue[core.TaskID]
	lost  core.TaskID // up to here some may be missing
}

// IndexTasks is how many tasks an Index knows unless it is told otherwise.
const IndexTasks = 1 << 16

// NewIndex makes an Index of at most so many tasks.
func NewIndex(limit int) *Index {
	return &Index{limit: max(limit, 1), threads: map[core.ThreadID]*contents{}}
}

// Add writes a task into its thread. Its id is greater than those of all tasks
// added before.
func (x *Index) Add(id core.ThreadID, task core.TaskID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.threads[id]
	if c == nil {
		c = &contents{id: id}
		x.threads[id] = c
	}
	c.tasks.Push(task)
	x.order.Push(c)
	for x.order.Len() > x.limit {
		oldest, _ := x.order.Pop()
		x.drop(oldest)
	}
}

// drop forgets the oldest task, which is of the thread c. Callers hold mu.
func (x *Index) drop(c *contents) {
	c.lost, _ = c.tasks.Pop()
	x.lost = c.lost
	if c.tasks.Len() == 0 {
		delete(x.threads, c.id)
	}
}

// Next returns the first task of a thread behind after, or "" if there is none.
// It reports whether tasks between them may be missing.
func (x *Index) Next(id core.ThreadID, after core.TaskID) (task core.TaskID, missing bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.threads[id]
	if c == nil {
		return "", after != "" && after < x.lost
	}
	tasks := c.tasks.Items()
	i, found := slices.BinarySearch(tasks, after)
	if found {
		i++
	}
	if i < len(tasks) {
		task = tasks[i]
	}
	return task, after < c.lost || !found && after != "" && after < x.lost
}

// Latest returns up to n of the latest tasks of a thread, oldest first.
func (x *Index) Latest(id core.ThreadID, n int) []core.TaskID {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.threads[id]
	if c == nil {
		return nil
	}
	tasks := c.tasks.Items()
	return slices.Clone(tasks[max(0, len(tasks)-n):])
}

// Has reports whether the Index knows the task as one of the thread.
func (x *Index) Has(id core.ThreadID, task core.TaskID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.threads[id]
	if c == nil {
		return false
	}
	_, found := slices.BinarySearch(c.tasks.Items(), task)
	return found
}
