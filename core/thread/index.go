package thread

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Index knows the tasks of threads, ordered by id. Beyond its limit it drops the oldest tasks of the account
// with the most, and reports where some may be missing. It is safe for concurrent use.
type Index struct {
	limit int

	mu      sync.Mutex
	threads map[core.ThreadID]*contents
	order   fifo.Queue[entry] // oldest first
	shares  lru.Shares        // of those who asked
	lost    core.TaskID       // the last that was dropped
}

type entry struct {
	of    *contents
	task  core.TaskID
	asked *lru.Share
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

// Unknown is the account of tasks of which it is not known who asked: those of other hubs, and of before a
// start. Together they count as of one.
const Unknown = ""

// slack is the part of the limit beyond which an Index drops tasks, all at once.
const slack = 128

// Add adds a task to a thread, in the order of ids, unless the thread has it. The account is
// [core.Principal.Account] of who asked, or Unknown.
func (x *Index) Add(id core.ThreadID, task core.TaskID, account string) {
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
	x.order.Push(entry{c, task, x.shares.Add(account)})
	if x.order.Len() <= x.limit+x.limit/slack {
		return
	}
	x.order.DeleteFirst(x.shares.Cut(x.limit), func(e entry) bool {
		if !e.asked.Loses() {
			return false
		}
		x.shares.Remove(e.asked)
		e.of.remove(e.task)
		e.of.lost = max(e.of.lost, e.task)
		x.lost = max(x.lost, e.task)
		x.forget(e.of)
		return true
	})
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

// remove removes a task. It reports false if it is not there.
func (c *contents) remove(task core.TaskID) bool {
	all := c.tasks.Items()
	at, found := slices.BinarySearch(all, task)
	if found {
		copy(all[1:at+1], all[:at])
		c.tasks.Pop()
	}
	return found
}

// Remove takes a task out of a thread, as if it had never been there.
func (x *Index) Remove(id core.ThreadID, task core.TaskID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.threads[id]
	if c == nil || !c.remove(task) {
		return
	}
	order := x.order.Items()
	at := slices.IndexFunc(order, func(e entry) bool { return e.of == c && e.task == task })
	x.shares.Remove(order[at].asked)
	copy(order[1:at+1], order[:at])
	x.order.Pop()
	x.forget(c)
}

// forget drops a thread without tasks. Callers hold mu.
func (x *Index) forget(c *contents) {
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
