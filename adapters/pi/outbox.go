package pi

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core/link"
)

// item is one thing that a client is to be sent, in its turn: exactly one field is
// set.
type item struct {
	frame []byte
	// step is to be told from its beginning; keeps is how many bytes it has in memory.
	step  *step
	keeps int
	// fence holds back what follows until the step has been told.
	fence *step
	// last closes the connection.
	last *link.Reason
}

// itemBytes is about what an item costs beside what it has to tell.
const itemBytes = 64

// size is what an item counts for while it waits, beside what a step keeps.
func (it item) size() int { return itemBytes + len(it.frame) }

// outbox is what a client is to be sent, in order. Whoever has something for a
// client puts it here and goes on.
type outbox struct {
	mu    sync.Mutex
	items []item
	bytes int // of items here, and of frames on their way into the link
	// gathered is how many bytes came since the last look for which nobody was woken.
	gathered int
	// live is what the steps keep that wait here, by their run. As long as that goes on
	// it keeps them itself, and whoever comes late may be told all of it; then they count.
	live map[*run]int
	// limit is in bytes: beyond a part of it the client's own commands wait, beyond
	// all of it the client is too slow.
	limit int
	ready chan struct{}
	room  chan struct{}
}

const (
	// patienceShare is the part of its limit beyond which an outbox makes its own client
	// wait.
	patienceShare = 16
	// spareItems is for how many items an outbox keeps room that it does not need.
	spareItems = 1024
)

func newOutbox(limit int) outbox {
	return outbox{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push adds an item. It reports false when the client is too slow to be sent more.
func (o *outbox) push(it item) bool {
	ok := o.add(it, false)
	command.Signal(o.ready)
	return ok
}

// pushLater is push of an item that may wait for [outbox.wake], or for the next push.
func (o *outbox) pushLater(it item) bool {
	return o.add(it, true)
}

// wake has what was pushed for later sent.
func (o *outbox) wake() {
	o.mu.Lock()
	waits := o.gathered > 0
	o.mu.Unlock()
	if waits {
		command.Signal(o.ready)
	}
}

func (o *outbox) add(it item, later bool) bool {
	if it.step != nil {
		it.keeps = it.step.size()
	}
	o.mu.Lock()
	if it.step != nil {
		if o.live == nil {
			o.live = map[*run]int{}
		}
		o.live[it.step.run] += it.keeps
	}
	o.items = append(o.items, it)
	full := o.bytes > o.limit
	o.bytes += it.size()
	if later {
		before := o.gathered
		if o.gathered += it.size(); before < gatherBytes && o.gathered >= gatherBytes {
			command.Signal(o.ready)
		}
	}
	o.mu.Unlock()
	return !full
}

// take returns all the items there are, and keeps the memory of spare for the next; or
// nothing, and leaves spare alone.
func (o *outbox) take(spare []item) []item {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := o.items
	if len(items) == 0 {
		return nil
	}
	o.gathered = 0
	o.items = spare[:0]
	return items
}

// over notes that a run has ended: it is for the client alone now that its steps are
// kept.
func (o *outbox) over(r *run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes += o.live[r]
	delete(o.live, r)
}

// sent notes that an item waits here no longer: the link has taken its frame, or it is
// its turn.
func (o *outbox) sent(it item) {
	o.mu.Lock()
	before, enough := o.bytes, o.limit/patienceShare
	o.bytes -= it.size()
	if it.step != nil {
		r := it.step.run
		if _, lives := o.live[r]; !lives {
			o.bytes -= it.keeps
		} else if o.live[r] -= it.keeps; o.live[r] == 0 {
			delete(o.live, r)
		}
	}
	freed := before > enough && o.bytes <= enough
	o.mu.Unlock()
	if freed {
		command.Signal(o.room)
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
