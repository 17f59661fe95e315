package thread

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Index knows the tasks of threads, ordered by id. Beyond its limit it drops the oldest tasks of the account
// with the most, and reports where some may be missing. It is safe for concurrent use.
type Index struct {
	mu      sync.Mutex
	threads map[core.ThreadID]*contents
	tasks   *lru.Cache[taskOf, string] // the accounts of those who asked
	lost    core.TaskID                // the last that was dropped
}

// taskOf is a task of a thread.
type taskOf struct {
	thread core.ThreadID
	task   core.TaskID
}

type contents struct {
	tasks []core.TaskID
	lost  core.TaskID // up to this one, some may be missing
}

// IndexTasks is the default limit of an Index.
const IndexTasks = 1 << 16

// NewIndex returns an Index of at most that many tasks.
func NewIndex(limit int) *Index {
	x := &Index{threads: map[core.ThreadID]*contents{}}
	x.tasks = lru.New(lru.Options[taskOf, string]{
		Count: max(limit, 1), Owner: func(_ taskOf, account string) string { return account }, Evicted: x.evicted,
	})
	return x
}

// Unknown is the account of tasks of which it is not known who asked: those of other hubs, and of before a
// start. Together they count as of one.
const Unknown = ""

// Add adds a task to a thread, in the order of ids, unless the thread has it. The account is
// [core.Principal.Account] of who asked, or Unknown.
func (x *Index) Add(id core.ThreadID, task core.TaskID, account string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.threads[id]
	if c == nil {
		c = &contents{}
		x.threads[id] = c
	}
	if at, found := slices.BinarySearch(c.tasks, task); !found {
		c.tasks = slices.Insert(c.tasks, at, task)
		x.tasks.Put(taskOf{id, task}, account)
	}
}

// evicted takes out a task that the limit drops. Callers hold mu.
func (x *Index) evicted(of taskOf, _ string) {
	c := x.threads[of.thread]
	c.lost, x.lost = max(c.lost, of.task), max(x.lost, of.task)
	x.remove(of)
}

// Remove takes a task out of a thread, as if it had never been there.
func (x *Index) Remove(id core.ThreadID, task core.TaskID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, found := x.tasks.Remove(taskOf{id, task}); found {
		x.remove(taskOf{id, task})
	}
}

// remove takes a task out of its thread, and drops that with its last one. Callers hold mu.
func (x *Index) remove(of taskOf) {
	c := x.threads[of.thread]
	at, _ := slices.BinarySearch(c.tasks, of.task)
	copy(c.tasks[1:at+1], c.tasks[:at]) // it is the first, mostly
	if c.tasks = c.tasks[1:]; len(c.tasks) == 0 {
		delete(x.threads, of.thread)
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
	i, found := slices.BinarySearch(c.tasks, after)
	if found {
		i++
	}
	if i < len(c.tasks) {
		task = c.tasks[i]
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
	return slices.Clone(c.tasks[max(0, len(c.tasks)-n):])
}

// Has reports whether the task is known to belong to the thread.
func (x *Index) Has(id core.ThreadID, task core.TaskID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, known := x.tasks.Get(taskOf{id, task})
	return known
}
