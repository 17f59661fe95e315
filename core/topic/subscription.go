package topic

import (
	"slices"
	"time"
)

// redeliverWindow is how long after a transport accepted a notice it is still sent again
// when the connection ends. Acceptance does not prove arrival; the window exceeds the
// time that it takes to detect a dead peer.
const redeliverWindow = time.Minute

// ackResolution is how precisely the time of an acceptance is kept.
const ackResolution = time.Second

// subscription is a place in the log, and what is wanted there. Book.mu guards it.
type subscription struct {
	patterns []string
	// since is the number after which notices match the patterns.
	since uint64
	// read is the number of the last notice that was considered, sent that of the last
	// one that was given to the subscriber, accepted that of the last one that its
	// transport took.
	read, sent, accepted uint64
	// resendTo is the number up to which notices that were addressed to the subscriber
	// itself are given to it again.
	resendTo uint64
	// unacked is what the transport accepted recently.
	unacked []acceptance
}

// acceptance is when a transport accepted the notices after a number.
type acceptance struct {
	after uint64
	at    time.Time
}

// arrived reports whether all that was accepted then has arrived for certain.
func (a acceptance) arrived(now time.Time) bool {
	return now.Sub(a.at) >= redeliverWindow+ackResolution
}

// newSubscription begins behind the notice of a number.
func newSubscription(last uint64) *subscription {
	return &subscription{since: last, read: last, sent: last, accepted: last}
}

// wants reports whether the subscriber asked for the topic.
func (s *subscription) wants(topic string) bool {
	return slices.ContainsFunc(s.patterns, func(p string) bool { return Match(p, topic) })
}

// isIdle reports whether the subscription has nothing left to give.
func (s *subscription) isIdle(now time.Time) bool {
	return len(s.patterns) == 0 && s.arrivedUpTo(now) >= s.resendTo
}

// give notes that the notice of a number, which was considered last, is given to the
// subscriber.
func (s *subscription) give(number uint64) {
	if s.accepted >= s.sent {
		s.accepted = number - 1 // what was not given since then cannot be lost
	}
	s.sent = number
}

// ack notes that the transport accepted the notice of a number. Acks come in the order in
// which the notices were given.
func (s *subscription) ack(number uint64, now time.Time) {
	if n := len(s.unacked); n > 0 && now.Sub(s.unacked[n-1].at) < ackResolution {
		latest := &s.unacked[n-1]
		latest.after = min(latest.after, number-1) // the place may have moved back since
	} else {
		s.unacked = slices.DeleteFunc(s.unacked, func(a acceptance) bool { return a.arrived(now) })
		s.unacked = append(s.unacked, acceptance{number - 1, now})
	}
	s.accepted = max(s.accepted, number)
}

// handled returns the number up to which all that was given was accepted.
func (s *subscription) handled() uint64 {
	if s.accepted < s.sent {
		return s.accepted
	}
	return s.read
}

// arrivedUpTo returns the number up to which all that was given has arrived for certain.
func (s *subscription) arrivedUpTo(now time.Time) uint64 {
	certain := s.handled()
	for _, a := range s.unacked {
		if !a.arrived(now) {
			certain = min(certain, a.after)
		}
	}
	return certain
}

// rewind moves the place to the number behind which a new connection goes on, which has
// accepted nothing yet.
func (s *subscription) rewind(read uint64) {
	s.read, s.sent, s.accepted, s.unacked = read, read, read, nil
}

// merge adds the subscription of another connection of the same identity, as far as
// there is room for its patterns. What only one of the two was given comes to both, and
// so does what was given and not accepted: an Ack of it would not count any more.
func (s *subscription) merge(o *subscription) {
	for _, p := range o.patterns {
		if len(s.patterns) < maxPatterns && !slices.Contains(s.patterns, p) {
			s.patterns = append(s.patterns, p)
		}
	}
	s.since, s.read, s.resendTo = min(s.since, o.since), min(s.handled(), o.handled()), max(s.resendTo, o.resendTo)
	s.sent, s.accepted = s.read, s.read
}
