package recorder

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/task"
)

// inbox collects the readers of tasks that have events to write.
type inbox struct {
	readers *fifo.Mailbox[*task.Reader]
	roused  chan struct{} // has a token when next is to return although no task has events
	stopped chan struct{}
}

// errClosed is returned once an inbox is closed and empty.
var errClosed = errors.New("the recorder was stopped")

func newInbox() inbox {
	return inbox{fifo.NewMailbox[*task.Reader](0, nil), make(chan struct{}, 1), make(chan struct{})}
}

// Ready implements task.Inbox.
func (in *inbox) Ready(r *task.Reader) bool { return in.readers.Put(r) }

// Principal implements task.Inbox: it is the hub.
func (in *inbox) Principal() core.Principal { return core.Principal{} }

// poll returns events of a task that is ready, if there is one.
func (in *inbox) poll() (task.Piece, bool) {
	for {
		r, ok := in.readers.Poll()
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
	stopped := in.stopped
	for {
		select {
		case <-in.roused:
			return task.Piece{}, nil
		default:
		}
		if p, ok := in.poll(); ok {
			return p, nil
		}
		if stopped == nil {
			return task.Piece{}, errClosed
		}
		select {
		case <-in.readers.Ready():
		case <-in.roused:
			return task.Piece{}, nil
		case <-stopped:
			stopped = nil // what came before is still returned
		case <-alarm:
			return task.Piece{}, nil
		case <-ctx.Done():
			return task.Piece{}, context.Cause(ctx)
		}
	}
}
