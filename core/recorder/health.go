package recorder

import (
	"cmp"
	"sync"
	"time"
)

// Health is whether the journal accepts records.
type Health struct {
	// Err is nil while it does; otherwise it says why not and what to do.
	Err error
	// Since is when it began to fail; zero while it does not.
	Since time.Time
}

// Health checks the journal without waiting. A failure and its end are logged once each; if
// nothing is recorded meanwhile, only this call notices them.
func (r *Recorder) Health() Health {
	r.health.mu.Lock()
	defer r.health.mu.Unlock()
	return r.update()
}

// health is the state of the journal as far as it is known.
type health struct {
	mu      sync.Mutex
	refused error // the last error of a write; nil once the write succeeded
	now     Health
	logged  string // the error that was logged last
}

// noteRefused notes the error of a write, or nil for its success.
func (r *Recorder) noteRefused(err error) {
	r.health.mu.Lock()
	defer r.health.mu.Unlock()
	r.health.refused = err
	r.update()
}

// update updates and logs the state of the journal. Callers hold health.mu.
func (r *Recorder) update() Health {
	h, log := &r.health, r.opts.Log
	known, failing := r.opts.Journal.Health(), h.now.Err != nil
	h.now.Err = cmp.Or(known, h.refused)
	switch {
	case h.now.Err == nil && failing:
		log.Warn("the journal takes records again", "failed_for", time.Since(h.now.Since).Round(time.Millisecond).String())
		h.now.Since, h.logged = time.Time{}, ""
	case h.now.Err != nil && (!failing || known != nil && known.Error() != h.logged):
		if !failing {
			h.now.Since = time.Now()
			r.opts.Count("journal.failing")
		}
		log.Error("the journal takes no records: tasks go on, and what is not recorded waits in memory", "error", h.now.Err)
		h.logged = h.now.Err.Error()
	}
	return h.now
}
