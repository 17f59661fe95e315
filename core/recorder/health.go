package recorder

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
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

// Failing is the error of [Recorder.Health], as far as that is known already: a failure is, by the last Health
// and by how the writes went since, and so is its end. While the journal takes records it costs next to nothing.
func (r *Recorder) Failing() error {
	if r.health.failing.Load() {
		return r.Health().Err
	}
	return r.health.unanswered()
}

// health is the state of the journal as far as it is known.
type health struct {
	mu      sync.Mutex
	refused error // the last error of a write; nil once the write succeeded
	now     Health
	logged  string // the error that was logged last

	failing atomic.Bool               // now.Err is set
	writing atomic.Pointer[time.Time] // since when a write is tried; nil for no write
}

// answerTime is how long the journal may take for a write, with all tries that fail for a moment, until it
// counts as failing. It is longer than an election among embedded servers, and than a write to a disk under load.
const answerTime = 2 * time.Second

// ErrUnanswered is the error of a journal that has not answered a write for long, and may yet have stored it.
var ErrUnanswered = fmt.Errorf("the journal has not answered a write for more than %s: once it does, what waits is recorded without a restart", answerTime)

// unanswered returns ErrUnanswered if a write has had no answer for longer than answerTime.
func (h *health) unanswered() error {
	if since := h.writing.Load(); since == nil || time.Since(*since) <= answerTime {
		return nil
	}
	return ErrUnanswered
}

// begin notes that the first try of a write begins.
func (h *health) begin() {
	now := time.Now()
	h.writing.Store(&now)
}

// end notes that the write is done, or given up, and reports whether that took longer than answerTime.
func (h *health) end() (late bool) {
	late = h.unanswered() != nil
	h.writing.Store(nil)
	return late
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
	h.now.Err = cmp.Or(known, h.refused, h.unanswered())
	h.failing.Store(h.now.Err != nil)
	switch {
	case h.now.Err == nil && failing:
		log.Warn("the journal takes records again", "failed_for", time.Since(h.now.Since).Round(time.Millisecond).String())
		h.now.Since, h.logged = time.Time{}, ""
	case h.now.Err != nil && (!failing || known != nil && known.Error() != h.logged):
		if !failing {
			h.now.Since = time.Now()
			r.opts.Count("journal.failing")
		}
		log.Error("the journal takes no records: tasks go on, what is not recorded waits in memory, and new tasks are refused", "error", h.now.Err)
		h.logged = h.now.Err.Error()
	}
	return h.now
}
