package agent

import "time"

// The time for which a repeated message is not logged again; it doubles each time.
const (
	minSilence = time.Minute
	maxSilence = 30 * time.Minute
)

// logLimiter limits how often a repeated message is logged: the first time, and then after 1, 2, 4 … at most 30
// minutes. The zero value allows the message at once.
type logLimiter struct {
	next       time.Time
	silence    time.Duration
	suppressed int // since the message was logged last
}

// allow reports whether to log the message now. If ok, suppressed is how often it was not logged since the last time.
func (l *logLimiter) allow() (ok bool, suppressed int) {
	if time.Now().Before(l.next) {
		l.suppressed++
		return false, 0
	}
	l.silence = min(max(minSilence, 2*l.silence), maxSilence)
	suppressed = l.suppressed
	l.next, l.suppressed = time.Now().Add(l.silence), 0
	return true, suppressed
}
