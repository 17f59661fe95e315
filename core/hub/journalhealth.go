package hub

import (
	"cmp"
	"sync"
	"time"
)

// JournalHealth says whether the journal takes records.
type JournalHealth struct {
	// Err is nil while it does; otherwise it says why not, and what to do.
	Err error
	// Since is when it began to fail; zero while it does not.
	Since time.Time
}

// JournalHealth looks at the journal. The log says once when it fails, and once when
// it is back: a change that nothing was recorded at is noticed by this call alone. It
// does not wait.
func (h *Hub) JournalHealth() JournalHealth {
	h.health.mu.Lock()
	defer h.health.mu.Unlock()
	return h.judge()
}

// health is what is known of the journal.
type health struct {
	mu      sync.Mutex
	refused error // what it said to the recorder last; nil once it took what it refused
	now     JournalHealth
	logged  string // what the log said of it last
}

// noteRefused takes in what the journal said to the recorder.
func (h *Hub) noteRefused(err error) {
	h.health.mu.Lock()
	defer h.health.mu.Unlock()
	h.health.refused = err
	h.judge()
}

// judge notes and logs how the journal is. Callers hold health.mu.
func (h *Hub) judge() JournalHealth {
	known, now, failing := h.journal.Health(), &h.health.now, h.health.now.Err != nil
	now.Err = cmp.Or(known, h.health.refused)
	switch {
	case now.Err == nil && failing:
		h.log.Warn("the journal takes records again", "failed_for", time.Since(now.Since).Round(time.Millisecond).String())
		now.Since, h.health.logged = time.Time{}, ""
	case now.Err != nil && (!failing || known != nil && known.Error() != h.health.logged):
		if !failing {
			now.Since = time.Now()
			h.Count("journal.failing")
		}
		h.log.Error("the journal takes no records: tasks go on, and what is not recorded waits in memory", "error", now.Err)
		h.health.logged = now.Err.Error()
	}
	return *now
}

// unrecorded returns how many tasks the journal does not have up to their last event.
func (h *Hub) unrecorded() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.tasks {
		t.mu.Lock()
		if t.recorded < t.last() {
			n++
		}
		t.mu.Unlock()
	}
	return n
}
