package audit

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Refused connections that have a line of their own, in a minute.
const (
	ownRefusals   = 10
	refusalWindow = time.Minute
)

// refusals counts the refused connections of a window of time. The zero refusals is ready.
type refusals struct {
	since  time.Time
	n      int
	folded uint64
	timer  *time.Timer
}

// fold reports whether a refusal has no line of its own. The first in a window calls flush at
// the end of the window.
func (r *refusals) fold(now time.Time, flush func()) bool {
	if r.folded == 0 && now.Sub(r.since) >= refusalWindow {
		r.since, r.n = now, 0
	}
	if r.n++; r.n <= ownRefusals {
		return false
	}
	if r.folded++; r.folded == 1 {
		r.timer = time.AfterFunc(max(0, refusalWindow-now.Sub(r.since)), flush)
	}
	return true
}

// flushRefusals queues the line of the refusals without a line of their own.
func (l *Log) flushRefusals() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeRefusals()
}

// closeRefusals ends the window of refusals. Callers hold mu.
func (l *Log) closeRefusals() {
	r := l.refused
	l.refused = refusals{}
	if r.folded == 0 {
		return
	}
	r.timer.Stop()
	l.push(Line{At: time.Now(), Act: ActConnect, Count: r.folded, Outcome: string(core.CodeUnauthenticated)})
}
