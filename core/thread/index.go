package thread

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
)

// Index knows the tasks of threads, ordered by id. Beyond its limit it drops old
// tasks, and reports where some may be missing. It is safe for concurrent use.
type Index struct {
	limit int

	mu      sync.Mutex
	threads map[core.ThreadID]*contents
	order   fifo.Queue[*contents] // the thread of each task, oldest first
	lost    core.TaskID           // the last that was dropped
}

type contents struct {
	id    core.ThreadID
	tasks fifo.Queue[core.TaskID]
	lost  core.TaskID // up to this one, some may be missing
}

// IndexTasks is the default limit of an Index.
const IndexTasks = 1 << 16

// NewIndex returns an Index of at most that many tasks.
func NewIndex(limit int) *Index {
	return &Index{limit: max(limit, 1), threads: map[core.ThreadID]*contents{}}
}

// Add adds a task to a thread, in the order of ids, unless the thread has it.
func (x *Index) Add(id core.ThreadID, task core.TaskID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.threads[id]
	if c == nil {
		c = &contents{id: id}
		x.threads[id] = c
	}
	if !c.add(task) {
		return
	}
	x.order.Push(c)
	for x.order.Len() > x.limit {
		oldest, _ := x.order.Pop()
		x.drop(oldest)
	}
}

// add adds a task at its place. It reports false if it is there.
func (c *contents) add(task core.TaskID) bool {
	at, found := slices.BinarySearch(c.tasks.Items(), task)
	if found {
		return false
	}
	c.tasks.Push(task)
	all := c.tasks.Items()
	copy(all[at+1:], all[at:])
	all[at] = task
	return true
}

// Remove takes a task out of a thread, as if it had never been there.
func (x *Index) Remove(id core.ThreadID, task core.TaskID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.threads[id]
	if c == nil {
		return
	}
	all := c.tasks.Items()
	at, found := slices.BinarySearch(all, task)
	if !found {
		return
	}
	copy(all[1:at+1], all[:at])
	c.tasks.Pop()
	order := x.order.Items()
	at = slices.Index(order, c)
	copy(order[1:at+1], order[:at])
	x.order.Pop()
	if c.tasks.Len() == 0 {
		delete(x.threads, id)
	}
}

// drop drops the oldest task of c. Callers hold mu.
func (x *Index) drop(c *contents) {
	c.lost, _ = c.tasks.Pop()
	x.lost = max(x.lost, c.lost)
	if c.tasks.Len() == 0 {
		delete(x.threads, c.id)
	}
}

// Next returns the first task of a thread after the given one, or "" if there is none,
// and whether tasks between them may be missing.
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

// Latest returns the latest tasks of a thread, at most n, oldest first.
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

// Has reports whether the task is known to belong to the thread.
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
