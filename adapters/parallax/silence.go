package parallax

import (
	"sync"
	"time"
)

// silence watches for a peer that has fallen silent: it rings after two intervals
// without a word and again after three. It begins with the first heartbeat.
type silence struct {
	mu       sync.Mutex
	timer    *time.Timer // nil before the first heartbeat
	interval time.Duration
	missed   int
	over     bool
	ringing  sync.WaitGroup // the timer that is set, until it has rung
}

// heard begins the watch anew, with the interval that holds now, and reports whether it had rung meanwhile. ring,
// always the same function, is called with how many intervals have passed; it
// must not call back.
func (q *silence) heard(beat bool, interval time.Duration, ring func(missed int)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || (q.timer == nil && !beat) {
		return false
	}
	rang := q.missed > 0
	q.missed, q.interval = 0, interval
	if q.timer != nil && q.timer.Stop() {
		q.ringing.Done()
	}
	q.ringing.Add(1)
	if q.timer == nil {
		q.timer = time.AfterFunc(2*interval, func() { q.ring(ring) })
	} else {
		q.timer.Reset(2 * interval)
	}
	return rang
}

func (q *silence) ring(ring func(int)) {
	defer q.ringing.Done()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	q.missed = max(2, q.missed+1)
	if q.missed == 2 {
		q.ringing.Add(1)
		q.timer.Reset(q.interval)
	}
	ring(q.missed)
}

// stop ends the watch and waits for a ring that is under way.
func (q *silence) stop() {
	q.mu.Lock()
	q.over = true
	if q.timer != nil && q.timer.Stop() {
		q.ringing.Done()
	}
	q.mu.Unlock()
	q.ringing.Wait()
}
