package frame

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// Options configure a Book.
type Options struct {
	// Keep is how many bytes of frames are kept of each connection; zero or less keeps none.
	Keep int
	// Memory counts the frames. They take at most an eighth of its limit, and none where it is
	// full.
	Memory *memory.Budget
	// Translations say how the dialects handle each kind.
	Translations core.Translations
}

// endedRings is how many full rings of connections that have ended are kept.
const endedRings = 16

// Book has the frames of all connections. It is safe for concurrent use; a nil Book keeps none.
type Book struct {
	keep         int
	memory       *memory.Budget
	translations core.Translations
	since        time.Time
	dropped      atomic.Int64 // when the newest frame was that gave way to others, in ns; 0 for none

	mu         sync.Mutex
	numbers    map[string]int // of connections, by dialect
	live       map[*Ring]struct{}
	ended      []*Ring // the oldest first
	endedBytes int
}

// NewBook returns an empty Book; nil if it would keep nothing.
func NewBook(o Options) *Book {
	if o.Keep <= 0 {
		return nil
	}
	return &Book{keep: o.Keep, memory: o.Memory, translations: o.Translations, since: time.Now(), numbers: map[string]int{}, live: map[*Ring]struct{}{}}
}

// Since returns since when frames are kept.
func (b *Book) Since() time.Time { return b.since }

// Connect returns the Ring of a new connection; nil for a nil Book. encode returns a message as
// bytes and may be nil if the messages are bytes.
func (b *Book) Connect(dialect string, encode func(message any) []byte) *Ring {
	if b == nil {
		return nil
	}
	return &Ring{book: b, dialect: dialect, encode: encode, share: memory.Of(b.memory, memory.Frames)}
}

// Dropped returns until when frames may have given way to others; the zero time if none has.
func (b *Book) Dropped() time.Time {
	if at := b.dropped.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// lose notes that a frame is not kept.
func (b *Book) lose(k *kept) {
	for at := k.at.UnixNano(); ; {
		before := b.dropped.Load()
		if at <= before || b.dropped.CompareAndSwap(before, at) {
			return
		}
	}
}

// Of returns the frames of a task in the order of their time.
func (b *Book) Of(task core.TaskID) (all []Frame) {
	b.mu.Lock()
	rings := slices.Clone(b.ended)
	for r := range b.live {
		rings = append(rings, r)
	}
	b.mu.Unlock()
	for _, r := range rings {
		for _, k := range r.of(task) {
			all = append(all, r.frame(&k, task))
		}
	}
	slices.SortStableFunc(all, func(a, b Frame) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Connection, b.Connection)) })
	return all
}

// add lists a ring with its first frame, which gives it its name: most requests over HTTP have none.
func (b *Book) add(r *Ring) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live[r] = struct{}{}
	if r.connection == "" {
		b.numbers[r.dialect]++
		r.connection = r.dialect + "-" + strconv.Itoa(b.numbers[r.dialect])
	}
}

// end keeps the frames of a connection that has ended, while there is room.
func (b *Book) end(r *Ring, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.live[r]; !ok {
		return
	}
	delete(b.live, r)
	b.ended, b.endedBytes = append(b.ended, r), b.endedBytes+bytes
	for b.endedBytes > endedRings*b.keep {
		b.dropEnded()
	}
}

// reopen undoes end. It reports whether the ring still has its frames.
func (b *Book) reopen(r *Ring) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.ended, r)
	if i < 0 {
		_, live := b.live[r] // it was not closed
		return live
	}
	r.mu.Lock()
	b.endedBytes -= r.bytes
	r.mu.Unlock()
	b.ended = slices.Delete(b.ended, i, i+1)
	b.live[r] = struct{}{}
	return true
}

// dropEnded drops the frames of the connection that ended first. Callers hold mu.
func (b *Book) dropEnded() {
	b.endedBytes -= b.ended[0].release()
	b.ended = slices.Delete(b.ended, 0, 1)
}

// makeRoom drops frames of connections that have ended until n bytes more may be held, and
// reports whether they may.
func (b *Book) makeRoom(n int) bool {
	if b.hasRoom(n) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.hasRoom(n) {
		if len(b.ended) == 0 {
			return false
		}
		b.dropEnded()
	}
	return true
}

// hasRoom reports whether n bytes more may be held.
func (b *Book) hasRoom(n int) bool {
	limit := b.memory.Limit()
	return limit == 0 || !b.memory.IsFull() && b.memory.HeldAs(memory.Frames)+int64(n) <= limit/8
}
