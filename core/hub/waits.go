package hub

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/task"
)

// waits are the readers of a session that wait for the end of a task, each for a limited
// time. The zero waits are empty.
type waits struct {
	mu     sync.Mutex
	closed bool
	timers table[*task.Reader, *time.Timer]
}

// add lets a reader wait for so long. If its task has not ended by then, the reader is
// closed and expired is called.
func (w *waits) add(r *task.Reader, wait time.Duration, expired func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		r.Close()
		return
	}
	w.timers.put(r, time.AfterFunc(wait, func() {
		w.done(r)
		if r.Close() {
			expired()
		}
	}))
}

// done forgets a reader that waits no more.
func (w *waits) done(r *task.Reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if timer := w.timers[r]; timer != nil {
		timer.Stop()
		delete(w.timers, r)
	}
}

// close ends all.
func (w *waits) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for r, timer := range w.timers {
		timer.Stop()
		r.Close()
	}
	w.timers = nil
}
