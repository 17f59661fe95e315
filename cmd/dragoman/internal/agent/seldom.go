package agent

import "time"

// The time after which a repeated message is logged again; it doubles with each time.
const (
	minSilence = time.Minute
	maxSilence = 30 * time.Minute
)

// seldom says when a message that would be repeated is logged: at first, and then ever more seldom. The zero value
// is that of a message that was not logged yet.
type seldom struct {
	next    time.Time
	silence time.Duration
	left    int // how often it was not logged since
}

// due reports whether to log the message now, and how often it was left out since the last time.
func (s *seldom) due() (now bool, left int) {
	if time.Now().Before(s.next) {
		s.left++
		return false, 0
	}
	s.silence = min(max(minSilence, 2*s.silence), maxSilence)
	left = s.left
	s.next, s.left = time.Now().Add(s.silence), 0
	return true, left
}
