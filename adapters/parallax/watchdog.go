package parallax

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/timer"
)

// watchdog detects a silent peer: it fires after two intervals without a message, and
// again after three. The first heartbeat starts it.
type watchdog struct {
	mu       sync.Mutex
	timer    *timer.Timer // nil before the first heartbeat
	interval time.Duration
	missed   int // intervals, when it fired last
	stopped  bool
	running  sync.WaitGroup // of timer
}

// reset starts it again with an interval, and reports whether it had fired. fire, which
// must be the same function each time, is called with the number of intervals that
// passed; it must not call the watchdog.
func (w *watchdog) reset(heartbeat bool, interval time.Duration, fire func(missed int)) (fired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || (w.timer == nil && !heartbeat) {
		return false
	}
	fired = w.missed > 0
	w.missed, w.interval = 0, interval
	if w.timer == nil {
		w.timer = timer.New(&w.running, func() { w.expire(fire) })
	}
	w.timer.Set(2 * interval)
	return fired
}

func (w *watchdog) expire(fire func(int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.missed = max(2, w.missed+1)
	if w.missed == 2 {
		w.timer.Set(w.interval)
	}
	fire(w.missed)
}

// stop ends it and waits for a running call of fire.
func (w *watchdog) stop() {
	w.mu.Lock()
	w.stopped = true
	w.timer.Stop()
	w.mu.Unlock()
	w.running.Wait()
}
