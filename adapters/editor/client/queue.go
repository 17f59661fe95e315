package client

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
)

// item is one thing that happens in a turn, in the order of the connection: an update if no other
// member is set.
type item struct {
	update wire.Update
	// message is a request of the agent, a permission or an elicitation, or the answer to the
	// prompt.
	message   *jsonrpc.Message
	withdrawn string       // the id of such a request
	told      core.Body    // what the hub tells the agent
	lost      error        // the connection has ended
	skipped   *link.Reject // a line over the limit
	// frame is the message of the agent that it is.
	frame frame.Incoming

	size int // bytes of its line
}

// maxQueued bounds what waits in the queue of a turn, in bytes. A single item may be larger.
const maxQueued = 1 << 20

// itemBytes is about the memory of an item beside its line.
const itemBytes = 512

// queue is what waits for the goroutine of a turn.
type queue struct {
	ready chan struct{} // has a token while there are items
	room  chan struct{} // has a token when there is room again

	mu     sync.Mutex
	items  []item
	spare  []item // memory for items
	bytes  int
	closed bool
}

func newQueue() *queue {
	return &queue{ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put adds an item, whatever waits.
func (q *queue) put(it item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(it)
}

// putWithin adds an item of the agent. While the queue is full it waits, until ctx or the turn
// has ended, and then returns false. Only the reader loop calls it.
func (q *queue) putWithin(ctx context.Context, it item) bool {
	for {
		q.mu.Lock()
		if q.closed || len(q.items) == 0 || q.bytes+it.size+itemBytes <= maxQueued {
			q.add(it)
			added := !q.closed
			q.mu.Unlock()
			return added
		}
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-ctx.Done():
			return false
		}
	}
}

// add adds an item. Callers hold mu.
func (q *queue) add(it item) {
	if q.closed {
		return
	}
	q.items, q.bytes = append(q.items, it), q.bytes+it.size+itemBytes
	signal(q.ready)
}

// take waits for items. They are valid until the next call. The error is the cause of ctx.
func (q *queue) take(ctx context.Context) ([]item, error) {
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			items := q.items
			clear(q.spare)
			q.items, q.spare, q.bytes = q.spare[:0], items, 0
			q.mu.Unlock()
			signal(q.room)
			return items, nil
		}
		q.mu.Unlock()
		select {
		case <-q.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// close drops what waits and all that is put later. It returns the requests of the agent that
// were not looked at.
func (q *queue) close() (unseen []jsonrpc.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.items {
		if it.message != nil && it.message.Kind() == jsonrpc.Request {
			unseen = append(unseen, *it.message)
		}
	}
	q.closed, q.items, q.bytes = true, nil, 0
	signal(q.room)
	return unseen
}

// signal puts a token into a channel that has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
