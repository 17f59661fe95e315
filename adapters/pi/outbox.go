package pi

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core/link"
)

// item is one thing that a client is to be sent, in its turn: exactly one field is
// set.
type item struct {
	frame []byte
	// step is to be told from its beginning.
	step *step
	// fence holds back what follows until the step has been told.
	fence *step
	// last closes the connection.
	last *link.Reason
}

// itemBytes is about what an item costs beside what it has to tell.
const itemBytes = 64

// size is what an item counts for while it waits: its bytes, and those that a step
// keeps in memory for as long.
func (it item) size() int {
	n := itemBytes + len(it.frame)
	if it.step != nil {
		n += it.step.size()
	}
	return n
}

// outbox is what a client is to be sent, in order. Whoever has something for a
// client puts it here and goes on.
type outbox struct {
	mu    sync.Mutex
	items []item
	bytes int // of items here, and of frames on their way into the link
	// limit is in bytes: beyond a part of it the client's own commands wait, beyond
	// all of it the client is too slow.
	limit int
	ready chan struct{}
	room  chan struct{}
}

// patienceShare is the part of its limit beyond which an outbox makes its own client
// wait.
const patienceShare = 16

func newOutbox(limit int) outbox {
	return outbox{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push adds an item. It reports false when the client is too slow to be sent more.
func (o *outbox) push(it item) bool {
	size := it.size()
	o.mu.Lock()
	o.items = append(o.items, it)
	full := o.bytes > o.limit
	o.bytes += size
	o.mu.Unlock()
	signal(o.ready)
	return !full
}

// take waits for items and returns all there are, in the memory of spare. It
// returns the context's error.
func (o *outbox) take(ctx context.Context, spare []item) ([]item, error) {
	for {
		o.mu.Lock()
		items := o.items
		if len(items) > 0 {
			o.items = spare[:0]
			o.mu.Unlock()
			return items, nil
		}
		o.mu.Unlock()
		select {
		case <-o.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// sent notes that so many bytes wait here no longer.
func (o *outbox) sent(n int) {
	o.mu.Lock()
	before, enough := o.bytes, o.limit/patienceShare
	o.bytes -= n
	freed := before > enough && o.bytes <= enough
	o.mu.Unlock()
	if freed {
		signal(o.room)
	}
}

// wait returns once the outbox is not full. One goroutine calls it. It returns the
// context's error.
func (o *outbox) wait(ctx context.Context) error {
	for {
		o.mu.Lock()
		full := o.bytes > o.limit/patienceShare
		o.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-o.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
