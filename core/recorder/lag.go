package recorder

import (
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core/journal"
)

// lag is the age of the oldest event that is not written yet, or the duration of a write of
// something else.
type lag struct{ since atomic.Pointer[time.Time] }

// begin notes the records that are about to be written.
func (l *lag) begin(records []journal.Record) {
	if len(records) == 0 {
		return
	}
	oldest := records[0].Event.At
	for _, r := range records[1:] {
		if r.Event.At.Before(oldest) {
			oldest = r.Event.At
		}
	}
	l.since.Store(&oldest)
}

// hold notes that the journal waits for another write from now on.
func (l *lag) hold() {
	now := time.Now()
	l.since.CompareAndSwap(nil, &now)
}

// end notes that everything is written.
func (l *lag) end() { l.since.Store(nil) }

// never notes that nothing is written any more: every limit is exceeded.
func (l *lag) never() { l.since.Store(&time.Time{}) }

// exceeds reports whether the journal is further behind than the limit; a negative limit
// is always exceeded.
func (l *lag) exceeds(limit time.Duration) bool {
	if limit < 0 {
		return true
	}
	since := l.since.Load()
	return since != nil && time.Since(*since) > limit
}
