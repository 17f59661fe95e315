package audit

import (
	"time"
)

// Refusals that have a line of their own in a minute: of connections, all together, and of one
// command of one principal with one outcome.
const (
	ownConnections = 10
	ownCommands    = 100
	refusalWindow  = time.Minute
	// maxRefusals bounds how many kinds of refusals are told apart in a minute.
	maxRefusals = 1024
)

// refusal is a kind of refusals that share a line.
type refusal struct{ principal, act, outcome string }

// refusals counts the refusals of a kind in a window of time that begins with the first.
type refusals struct {
	n, most int
	last    Line // of those without a line of their own
	end     *time.Timer
}

// isFolded reports whether the line of a refusal is left out, because it shares a line with
// others, which comes at the end of the window. Callers hold mu.
func (l *Log) isFolded(line Line) bool {
	kind, most := refusal{line.Principal, line.Act, line.Outcome}, ownCommands
	if line.Act == ActConnect { // it costs nothing to be refused under many names
		kind, most = refusal{act: line.Act}, ownConnections
	} else if l.refused[kind] == nil && len(l.refused) >= maxRefusals {
		kind = refusal{act: line.Act}
	}
	r := l.refused[kind]
	if r == nil {
		r = &refusals{most: most}
		r.end = time.AfterFunc(refusalWindow, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.refused[kind] == r {
				l.closeRefusals(kind, r)
			}
		})
		l.refused[kind] = r
	}
	if r.n++; r.n <= r.most {
		return false
	}
	r.last = Line{Principal: kind.principal, Act: line.Act, Outcome: line.Outcome}
	return true
}

// closeRefusals ends a window, and queues the line of the refusals without a line of their own.
// Callers hold mu.
func (l *Log) closeRefusals(kind refusal, r *refusals) {
	r.end.Stop()
	delete(l.refused, kind)
	if r.n > r.most {
		r.last.At, r.last.Count = time.Now(), uint64(r.n-r.most)
		l.push(r.last)
	}
}
