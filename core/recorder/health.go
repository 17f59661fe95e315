package recorder

import (
	"cmp"
	"sync"
	"time"
)

// Health says whether the journal takes records.
type Health struct {
	// Err is nil while it does; otherwise it says why not, and what to do.
	Err error
	// Since is when it began to fail; zero while it does not.
	Since time.Time
}

// Health looks at the journal. The log says once when it fails, and once when it is
// back: a change that nothing was recorded at is noticed by this call alone. It does not
// wait.
func (r *Recorder) Health() Health {
	r.health.mu.Lock()
	defer r.health.mu.Unlock()
	return r.judge()
}

// health is what is known of the journal.
type health struct {
	mu      sync.Mutex
	refused error // what it said last; nil once it took what it refused
	now     Health
	logged  string // what the log said of it last
}

// noteRefused takes in what the journal said.
func (r *Recorder) noteRefused(err error) {
	r.health.mu.Lock()
	defer r.health.mu.Unlock()
	r.health.refused = err
	r.judge()
}

// judge notes and logs how the journal is. Callers hold health.mu.
func (r *Recorder) judge() Health {
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
