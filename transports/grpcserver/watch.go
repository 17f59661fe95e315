package grpcserver

import (
	"context"
	"sync"
)

// watch lets calls that gRPC cannot interrupt obey the context they are given.
// One call at a time is watched, and begin and end belong to its goroutine. Since
// the calls of a loop mostly bring the same context, it is registered once and not
// for every message; one that never ends costs nothing.
type watch struct {
	// abandon is called in a goroutine of its own with a context that has ended
	// during a call.
	abandon func(context.Context)

	// done is of the context that is registered. The goroutine of the calls writes
	// it, holding mu, and may read it without.
	done <-chan struct{}

	mu   sync.Mutex
	stop func() bool // takes the registration back
	busy bool        // a call with that context is under way
	over bool        // released: register no more
}

// begin watches ctx until end. It returns ctx's error if it has ended already.
func (w *watch) begin(ctx context.Context) error {
	done := ctx.Done()
	if done == nil && w.done == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = true
	if done == w.done || w.over {
		return nil
	}
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
	w.done = done
	if done == nil {
		return nil
	}
	w.stop = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		ours := w.busy && w.done == done
		w.mu.Unlock()
		if ours {
			w.abandon(ctx)
		}
	})
	return nil
}

// end says that the call is over.
func (w *watch) end() {
	if w.done == nil {
		return
	}
	w.mu.Lock()
	w.busy = false
	w.mu.Unlock()
}

// release takes the registration back for good, so that a context which outlives
// the stream does not hold it. It may be called from anywhere.
func (w *watch) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}
