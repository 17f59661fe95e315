package agent

import "time"

// The time for which a repeated message is not logged again; it doubles each time.
const (
	minSilence = time.Minute
	maxSilence = 30 * time.Minute
)

// logLimiter limits how often a repeated message is logged: the first time, and then after 1, 2, 4 … at most 30
// minutes. The zero value logs the message at once.
type logLimiter struct {
	next       time.Time
	silence    time.Duration
	suppressed int // since the message was logged last
}

// log logs the message at a level, unless it is too early, with how often it was not logged since the last time.
func (l *logLimiter) log(level func(message string, fields ...any), message string, fields ...any) {
	if time.Now().Before(l.next) {
		l.suppressed++
		return
	}
	if l.suppressed > 0 {
		fields = append(fields, "repeated", l.suppressed)
	}
	level(message, fields...)
	l.silence = min(max(minSilence, 2*l.silence), maxSilence)
	l.next, l.suppressed = time.Now().Add(l.silence), 0
}
