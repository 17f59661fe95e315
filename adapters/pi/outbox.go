package pi

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/link"
)

// item is one entry of an outbox. Exactly one of frame, step, fence and last is set.
type item struct {
	frame []byte
	// answers is the request whose response the frame is, if frames are kept and it has a task.
	answers *request
	// step is sent from its beginning; retained is how many bytes it holds in memory.
	step     *step
	retained int
	// fence holds back the items after it until the client has all of the step.
	fence *step
	// last closes the connection.
	last *link.Reason
}

// itemBytes is about what an item costs besides its frame.
const itemBytes = 64

// size is what an item counts for while it waits, besides what its step retains.
func (it item) size() int { return itemBytes + len(it.frame) }

// outbox holds what a client is to be sent, in order. Adding an item never blocks.
type outbox struct {
	mu    sync.Mutex
	items fifo.Queue[item]
	bytes int // of the items here, and of frames that the link has not taken
	// unsignalled is how many bytes were added for later since the last take.
	unsignalled int
	// live is what the steps that wait here retain, by their run. It counts once the run is
	// over: until then the run holds the steps itself, for late subscribers.
	live map[*run]int
	// limit is in bytes. Beyond a part of it the client's own commands wait; beyond all of
	// it the client is closed as too slow.
	limit int
	ready chan struct{}
	room  chan struct{}
}

// throttleShare divides the limit: beyond that part the client's own commands wait.
const throttleShare = 16

func newOutbox(limit int) outbox {
	return outbox{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push adds an item. It reports false when the outbox was full.
func (o *outbox) push(it item) bool {
	ok := o.add(it, false)
	fifo.Signal(o.ready)
	return ok
}

// pushLater is push for an item that may wait for [outbox.wake], or for the next push.
func (o *outbox) pushLater(it item) bool {
	return o.add(it, true)
}

// wake has the items sent that were pushed for later.
func (o *outbox) wake() {
	o.mu.Lock()
	waits := o.unsignalled > 0
	o.mu.Unlock()
	if waits {
		fifo.Signal(o.ready)
	}
}

func (o *outbox) add(it item, later bool) bool {
	if it.step != nil {
		it.retained = it.step.size()
	}
	o.mu.Lock()
	if it.step != nil {
		if o.live == nil {
			o.live = map[*run]int{}
		}
		o.live[it.step.run] += it.retained
	}
	o.items.Push(it)
	full := o.bytes > o.limit
	o.bytes += it.size()
	if later {
		before := o.unsignalled
		if o.unsignalled += it.size(); before < gatherBytes && o.unsignalled >= gatherBytes {
			fifo.Signal(o.ready)
		}
	}
	o.mu.Unlock()
	return !full
}

// len returns how many items wait. All of them are about to be sent.
func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsignalled = 0
	return o.items.Len()
}

// take removes and returns the first item, if there is one that need not wait.
func (o *outbox) take(waits func(item) bool) (it item, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.items.Len() == 0 || waits(o.items.First()) {
		return it, false
	}
	return o.items.Pop()
}

// runEnded notes that a run has ended: from now on its steps are held for this client only,
// so they count.
func (o *outbox) runEnded(r *run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes += o.live[r]
	delete(o.live, r)
}

// sent notes that an item no longer waits: the link has taken its frame, or its step begins.
func (o *outbox) sent(it item) {
	o.mu.Lock()
	before, enough := o.bytes, o.limit/throttleShare
	o.bytes -= it.size()
	if it.step != nil {
		r := it.step.run
		if _, lives := o.live[r]; !lives {
			o.bytes -= it.retained
		} else if o.live[r] -= it.retained; o.live[r] == 0 {
			delete(o.live, r)
		}
	}
	freed := before > enough && o.bytes <= enough
	o.mu.Unlock()
	if freed {
		fifo.Signal(o.room)
	}
}

// wait blocks while the outbox is full enough to throttle the client. It returns the
// context's error. Only one goroutine may call it.
func (o *outbox) wait(ctx context.Context) error {
	for {
		o.mu.Lock()
		full := o.bytes > o.limit/throttleShare
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
