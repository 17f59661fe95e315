package grpcserver

import (
	"context"
	"sync"
)

// watch makes calls that gRPC cannot interrupt end with their context. One call at a time is
// watched; its goroutine calls begin and end. Since the calls of a loop usually have the
// same context, that is registered once and not for every message. A context that never
// ends costs nothing.
type watch struct {
	// abandon is called in a new goroutine with a context that ended during a call.
	abandon func(context.Context)

	// done belongs to the registered context. The goroutine of the calls writes it holding
	// mu, and may read it without.
	done <-chan struct{}

	mu   sync.Mutex
	stop func() bool // cancels the registration
	busy bool        // a call with that context is running
	over bool        // released
}

// begin watches ctx until end. If ctx has already ended, it returns its error.
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

// end ends the watch of the call.
func (w *watch) end() {
	if w.done == nil {
		return
	}
	w.mu.Lock()
	w.busy = false
	w.mu.Unlock()
}

// release cancels the registration for good, so that a context which outlives the stream
// does not keep it in memory. It may be called from any goroutine.
func (w *watch) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}
