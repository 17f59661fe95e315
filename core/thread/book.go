package thread

import (
	"container/list"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// Book holds the latest turns of the latest threads, which do not change once they
// are added. It is safe for concurrent use.
type Book struct {
	threads, bytes int

	mu     sync.Mutex
	byID   map[core.ThreadID]*list.Element
	recent *list.List // of *chapter, latest first
	total  int        // bytes
}

// TotalBytes bounds a Book in all, the form included in which a dialect writes its
// turns: the threads that were not touched for the longest time make room.
const TotalBytes = 256 << 20

// chapter is a thread. Its turns are shared with those who have read them: none is
// moved or overwritten.
type chapter struct {
	id      core.ThreadID
	turns   []core.Turn
	dropped int // how many turns before them their array still has
	bytes   int
}

func (c *chapter) add(turns []core.Turn) {
	written := make([]core.Written, len(turns))
	c.turns = slices.Grow(c.turns, len(turns))
	for i, t := range turns {
		t.Written = &written[i]
		c.turns = append(c.turns, t)
		c.bytes += t.Size()
	}
}

// drop forgets the oldest turn. The rest is copied once in a
// while, so that what was dropped leaves the memory.
func (c *chapter) drop() {
	c.bytes -= c.turns[0].Size()
	c.turns = c.turns[1:]
	if c.dropped++; c.dropped > len(c.turns)/4 {
		c.turns, c.dropped = append(make([]core.Turn, 0, len(c.turns)*5/4+1), c.turns...), 0
	}
}

// NewBook makes a Book of at most so many threads of at most so many bytes each.
// The latest turn of a thread is kept whole however long it is.
func NewBook(threads, bytes int) *Book {
	return &Book{threads: threads, bytes: bytes, byID: map[core.ThreadID]*list.Element{}, recent: list.New()}
}

// Add writes turns into a thread, dropping the oldest beyond its bounds.
func (b *Book) Add(id core.ThreadID, turns ...core.Turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	el := b.byID[id]
	if el == nil {
		el = b.recent.PushFront(&chapter{id: id})
		b.byID[id] = el
	} else {
		b.recent.MoveToFront(el)
	}
	c := el.Value.(*chapter)
	b.total -= 2 * c.bytes
	c.add(turns)
	for len(c.turns) > 1 && c.bytes > b.bytes {
		c.drop()
	}
	b.total += 2 * c.bytes
	for b.recent.Len() > b.threads || b.recent.Len() > 1 && b.total > TotalBytes {
		b.drop(b.recent.Back())
	}
}

// Turns returns the latest turns of a thread that fit into so many bytes, oldest
// first; it reports false when the book does not have the thread. They are shared:
// read only.
func (b *Book) Turns(id core.ThreadID, bytes int) ([]core.Turn, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	el := b.byID[id]
	if el == nil {
		return nil, false
	}
	turns := el.Value.(*chapter).turns
	n := len(turns)
	for n > 0 && bytes >= turns[n-1].Size() {
		n--
		bytes -= turns[n].Size()
	}
	return turns[n:len(turns):len(turns)], true
}

// Forget drops a thread.
func (b *Book) Forget(id core.ThreadID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if el := b.byID[id]; el != nil {
		b.drop(el)
	}
}

// drop forgets a chapter. Callers hold mu.
func (b *Book) drop(el *list.Element) {
	c := b.recent.Remove(el).(*chapter)
	delete(b.byID, c.id)
	b.total -= 2 * c.bytes
}
