package thread

import (
	"cmp"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Book keeps the latest turns of the latest threads. Turns do not change once they are
// added. It is safe for concurrent use.
type Book struct {
	bytes int

	mu      sync.Mutex
	threads *lru.Cache[core.ThreadID, *record]
}

// TotalBytes bounds a Book as a whole, including the form in which a dialect writes the
// turns. Beyond it, whoever has the most of it loses the thread whose last turn is the oldest.
const TotalBytes = 256 << 20

// record holds the turns of a thread. They are shared with callers of Turns, and never
// moved or overwritten.
type record struct {
	from    string // whose the thread is: who asked first
	turns   []core.Turn
	dropped int // how many dropped turns their array still holds
	lost    int // how many turns were dropped
	bytes   int // of the turns without their files
	files   int // bytes of those
	// agent is the only one that has answered since the thread is known; several says that there were more.
	agent   core.AgentID
	several bool
}

func (c *record) add(turns []core.Turn) {
	at, known := c.place(turns[0].Task)
	if known {
		return
	}
	written := make([]core.Written, len(turns))
	if at < len(c.turns) { // others may have what would move
		c.turns, c.dropped = slices.Insert(slices.Clone(c.turns), at, turns...), 0
	} else {
		c.turns = append(c.turns, turns...)
	}
	for i := range written {
		t := &c.turns[at+i]
		t.Written, t.Files = &written[i], KeptFiles(t.Files)
		c.bytes += t.Size()
		c.files += fileBytes(*t)
		if t.Agent != "" {
			c.several = c.several || c.agent != "" && c.agent != t.Agent
			c.agent = t.Agent
		}
	}
	if c.files > FileBytes {
		c.forgetFiles()
	}
}

// The bounds of files: of a thread in bytes, and of a turn in number. Of older files only the names are kept, and of more
// nothing.
const (
	FileBytes    = 1 << 20
	filesPerTurn = 64
)

// KeptFiles returns the files of a turn that are kept, in a list of their own.
func KeptFiles(all []core.File) (kept []core.File) {
	for _, f := range all {
		if len(kept) < filesPerTurn && len(f.Name)+len(f.MediaType) <= 2*core.MaxIDBytes {
			kept = append(kept, f)
		}
	}
	return kept
}

// fileBytes estimates the memory of the files of a turn.
func fileBytes(t core.Turn) (n int) {
	for _, f := range t.Files {
		n += 56 + len(f.Name) + len(f.MediaType) + len(f.Data)
	}
	return n
}

// forgetFiles forgets what is in files that never fit, then the oldest files: what is in them, then their names.
func (c *record) forgetFiles() {
	c.turns, c.dropped = slices.Clone(c.turns), 0 // others may have what changes
	for i := range c.turns {
		c.turns[i].Files = slices.Clone(c.turns[i].Files)
	}
	c.forgetData(FileBytes)
	c.forgetData(0)
	for i := range c.turns {
		if c.files <= FileBytes {
			return
		}
		c.files -= fileBytes(c.turns[i])
		c.turns[i].Files = nil
	}
}

// forgetData forgets what is in files of more than that many bytes, the oldest first, until the others fit.
func (c *record) forgetData(over int) {
	for _, t := range c.turns {
		for i := range t.Files {
			if c.files <= FileBytes {
				return
			}
			if f := &t.Files[i]; len(f.Data) > over {
				c.files -= len(f.Data)
				f.Data = nil
			}
		}
	}
}

// place returns the index at which the turns of a task belong, in the order of tasks, and whether
// they are there.
func (c *record) place(task core.TaskID) (at int, known bool) {
	if n := len(c.turns); n == 0 || task == "" || c.turns[n-1].Task < task {
		return n, false
	}
	return slices.BinarySearchFunc(c.turns, task, func(t core.Turn, id core.TaskID) int { return cmp.Compare(t.Task, id) })
}

// drop drops the oldest turn. Now and then the rest is copied, so that the memory of
// dropped turns is released.
func (c *record) drop() {
	c.bytes -= c.turns[0].Size()
	c.files -= fileBytes(c.turns[0])
	c.lost++
	c.turns = c.turns[1:]
	if c.dropped++; c.dropped > len(c.turns)/4 {
		c.turns, c.dropped = append(make([]core.Turn, 0, len(c.turns)*5/4+1), c.turns...), 0
	}
}

// NewBook returns a Book of that many threads with that many bytes each. The latest turn
// of a thread is kept even if it is larger.
func NewBook(threads, bytes int) *Book {
	size := func(_ core.ThreadID, c *record) int { return 2*c.bytes + c.files }
	return &Book{bytes: bytes, threads: lru.New(lru.Options[core.ThreadID, *record]{
		Count: threads, Bytes: TotalBytes, Size: size,
		Owner: func(_ core.ThreadID, c *record) string { return c.from },
	})}
}

// Add adds the turns of tasks to a thread, in the order of the tasks, but for those that it has, and drops
// the oldest turns beyond the bounds. Turns of a task come one behind the other, turns without a task last.
func (b *Book) Add(id core.ThreadID, turns ...core.Turn) {
	if len(turns) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.threads.Get(id)
	if !ok {
		c = &record{from: turns[0].From}
	}
	for len(turns) > 0 {
		n := 1
		for n < len(turns) && turns[n].Task == turns[0].Task {
			n++
		}
		c.add(turns[:n])
		turns = turns[n:]
	}
	for len(c.turns) > 1 && c.bytes > b.bytes {
		c.drop()
	}
	b.threads.Put(id, c)
}

// Turns returns the latest turns of a thread that fit into that many bytes, oldest first,
// and whether the thread is known. The turns are shared: do not change them.
func (b *Book) Turns(id core.ThreadID, bytes int) ([]core.Turn, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.threads.Get(id)
	if !ok {
		return nil, false
	}
	turns := c.turns
	n := len(turns)
	for n > 0 && bytes >= turns[n-1].Size() {
		n--
		bytes -= turns[n].Size()
	}
	return turns[n:len(turns):len(turns)], true
}

// Has reports whether a thread is known.
func (b *Book) Has(id core.ThreadID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.threads.Get(id)
	return ok
}

// HasHad reports whether a thread has the turns of a task, or has dropped them for want of room.
func (b *Book) HasHad(id core.ThreadID, task core.TaskID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.threads.Get(id)
	if !ok {
		return false
	}
	at, has := c.place(task)
	return has || at == 0 && c.lost > 0
}

// IsOf reports whether nobody but the agent has answered in a thread, as far as that is known. It costs the same for a
// long thread.
func (b *Book) IsOf(id core.ThreadID, agent core.AgentID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.threads.Get(id)
	return !ok || !c.several && (c.agent == agent || c.agent == "")
}

// Lost returns how many turns of a thread were dropped.
func (b *Book) Lost(id core.ThreadID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.threads.Get(id); ok {
		return c.lost
	}
	return 0
}

// Forget drops a thread.
func (b *Book) Forget(id core.ThreadID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.threads.Remove(id)
}
