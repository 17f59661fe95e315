package thread

import (
	"container/list"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// Book holds the latest turns of the latest threads. It is safe for concurrent
// use.
type Book struct {
	threads, bytes int

	mu     sync.Mutex
	byID   map[core.ThreadID]*list.Element
	recent *list.List // of *chapter, latest first
	total  int        // bytes
}

// TotalBytes bounds a Book in all: the threads that were not touched for the
// longest time make room.
const TotalBytes = 256 << 20

type chapter struct {
	id    core.ThreadID
	turns window[core.Turn]
	bytes int
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
	for _, t := range turns {
		c.turns.add(t)
		c.bytes, b.total = c.bytes+t.Size(), b.total+t.Size()
	}
	for len(c.turns.left()) > 1 && c.bytes > b.bytes {
		size := c.turns.drop().Size()
		c.bytes, b.total = c.bytes-size, b.total-size
	}
	for b.recent.Len() > b.threads || b.recent.Len() > 1 && b.total > TotalBytes {
		b.drop(b.recent.Back())
	}
}

// Turns returns the latest turns of a thread that fit into so many bytes, oldest
// first; it reports false when the book does not have the thread.
func (b *Book) Turns(id core.ThreadID, bytes int) ([]core.Turn, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	el := b.byID[id]
	if el == nil {
		return nil, false
	}
	turns := el.Value.(*chapter).turns.left()
	n := len(turns)
	for n > 0 && bytes >= turns[n-1].Size() {
		n--
		bytes -= turns[n].Size()
	}
	return slices.Clone(turns[n:]), true
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
	b.total -= c.bytes
}
