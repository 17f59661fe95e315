package parallax

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/timer"
)

// silence watches for a peer that has fallen silent: it rings after two intervals
// without a word and again after three. It begins with the first heartbeat.
type silence struct {
	mu       sync.Mutex
	timer    *timer.Timer // nil before the first heartbeat
	interval time.Duration
	missed   int
	over     bool
	running  sync.WaitGroup // timer
}

// heard starts the watch again, with the interval that holds now, and reports whether it
// had rung meanwhile. ring, always the same function, is called with how many intervals
// have passed; it must not call back.
func (q *silence) heard(beat bool, interval time.Duration, ring func(missed int)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || (q.timer == nil && !beat) {
		return false
	}
	rang := q.missed > 0
	q.missed, q.interval = 0, interval
	if q.timer == nil {
		q.timer = timer.New(&q.running, func() { q.ring(ring) })
	}
	q.timer.Set(2 * interval)
	return rang
}

func (q *silence) ring(ring func(int)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	q.missed = max(2, q.missed+1)
	if q.missed == 2 {
		q.timer.Set(q.interval)
	}
	ring(q.missed)
}

// stop ends the watch and waits for a ring that is under way.
func (q *silence) stop() {
	q.mu.Lock()
	q.over = true
	q.timer.Stop()
	q.mu.Unlock()
	q.running.Wait()
}
