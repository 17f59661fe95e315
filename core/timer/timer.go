package timer

import (
	"sync"
	"time"
)

// Timer calls its function on a goroutine of its own, once for each Set. Its wait group
// counts it from Set until the call has ended, or was stopped. Set and Stop of a Timer must
// not be called at the same time; the function may call both.
type Timer struct {
	running *sync.WaitGroup
	ring    func()
	timer   *time.Timer // nil before it is first set
}

// New returns a Timer that is not set.
func New(running *sync.WaitGroup, ring func()) *Timer { return &Timer{running: running, ring: ring} }

// After returns a Timer that is set.
func After(running *sync.WaitGroup, d time.Duration, ring func()) *Timer {
	t := New(running, ring)
	t.Set(d)
	return t
}

// Set calls the function after a time. It replaces a time that was set before and has not
// come.
func (t *Timer) Set(d time.Duration) {
	t.running.Add(1)
	if t.timer == nil {
		t.timer = time.AfterFunc(d, func() {
			defer t.running.Done()
			t.ring()
		})
	} else if t.timer.Reset(d) {
		t.running.Done() // for the call that was replaced
	}
}

// Stop prevents the call of the function, and reports whether one was due. It does not wait
// for a call that has begun. A nil Timer is not set.
func (t *Timer) Stop() bool {
	if t == nil || t.timer == nil || !t.timer.Stop() {
		return false
	}
	t.running.Done()
	return true
}
