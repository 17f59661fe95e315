package recorder

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/task"
)

// inbox collects the readers of tasks that have events to write.
type inbox struct {
	mu     sync.Mutex
	ready  fifo.Queue[*task.Reader]
	roused bool // next is to return although no task has events
	closed bool
	wake   chan struct{}
}

// errClosed is returned once an inbox is closed and empty.
var errClosed = errors.New("the recorder was stopped")

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

// Ready implements task.Inbox.
func (in *inbox) Ready(r *task.Reader) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ready.Push(r)
	in.signal()
	return true
}

// Principal implements task.Inbox: it is the hub.
func (in *inbox) Principal() core.Principal { return core.Principal{} }

// rouse makes next return.
func (in *inbox) rouse() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.roused = true
	in.signal()
}

func (in *inbox) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.signal()
}

// signal wakes next. Callers hold mu.
func (in *inbox) signal() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

func (in *inbox) isEmpty() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ready.Len() == 0
}

// poll returns events of a task that is ready, if there is one.
func (in *inbox) poll() (task.Piece, bool) {
	for {
		in.mu.Lock()
		r, ok := in.ready.Pop()
		in.mu.Unlock()
		if !ok {
			return task.Piece{}, false
		}
		if p, ok := r.Take(); ok {
			return p, true
		}
	}
}

// next waits for a task with events to write. It returns an empty piece when the alarm fires
// or the inbox was roused, and errClosed or the context's error at the end.
func (in *inbox) next(ctx context.Context, alarm <-chan time.Time) (task.Piece, error) {
	for {
		in.mu.Lock()
		roused := in.roused
		in.roused = false
		in.mu.Unlock()
		if roused {
			return task.Piece{}, nil
		}
		if p, ok := in.poll(); ok {
			return p, nil
		}
		in.mu.Lock()
		over := in.closed && in.ready.Len() == 0 && !in.roused
		in.mu.Unlock()
		if over {
			return task.Piece{}, errClosed
		}
		select {
		case <-in.wake:
		case <-alarm:
			return task.Piece{}, nil
		case <-ctx.Done():
			return task.Piece{}, context.Cause(ctx)
		}
	}
}
