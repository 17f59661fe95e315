package topic

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// redeliverWindow is how long after a transport accepted a notice it is still sent again
// when the connection ends. Acceptance does not prove arrival; the window exceeds the
// time that it takes to detect a dead peer.
const redeliverWindow = time.Minute

// ackResolution is how precisely the time of an acceptance is kept.
const ackResolution = time.Second

// subscription is a position in the log, and the patterns wanted there. Book.mu guards it.
type subscription struct {
	patterns []string
	// since is the number after which notices match the patterns.
	since uint64
	// read is the number of the last notice that was considered, sent of the last one that
	// was delivered, accepted of the last one that the transport accepted.
	read, sent, accepted uint64
	// resendTo is the number up to which notices that were addressed to the subscriber
	// itself are delivered again.
	resendTo uint64
	// gap says that notices are gone that another hub had, which it has not been told.
	gap bool
	// last is the principal of the last connection, of a subscription that has none, and left is since when.
	last core.Principal
	left time.Time
	// unacked is what the transport accepted recently, and may have lost.
	unacked []acceptance
}

// acceptance is when a transport accepted the notices after a number.
type acceptance struct {
	after uint64
	at    time.Time
}

// arrived reports whether all that was accepted then has certainly arrived.
func (a acceptance) arrived(now time.Time) bool {
	return now.Sub(a.at) >= redeliverWindow+ackResolution
}

// newSubscription starts after the notice with the number.
func newSubscription(last uint64) *subscription {
	return &subscription{since: last, read: last, sent: last, accepted: last}
}

// wants reports whether a pattern matches the topic.
func (s *subscription) wants(topic string) bool {
	return slices.ContainsFunc(s.patterns, func(p string) bool { return Match(p, topic) })
}

// isIdle reports whether the subscription will deliver nothing more.
func (s *subscription) isIdle(now time.Time) bool {
	return len(s.patterns) == 0 && !s.gap && s.arrivedUpTo(now) >= s.resendTo
}

// give records that the last notice considered, with the number, is delivered.
func (s *subscription) give(number uint64) {
	if s.accepted >= s.sent {
		s.accepted = number - 1 // what was not delivered since then cannot be lost
	}
	s.sent = number
}

// ack records that the transport accepted the notice with the number. Acks come in the
// order of delivery.
func (s *subscription) ack(number uint64, now time.Time) {
	if n := len(s.unacked); n > 0 && now.Sub(s.unacked[n-1].at) < ackResolution {
		latest := &s.unacked[n-1]
		latest.after = min(latest.after, number-1) // the position may have moved back since
	} else {
		s.unacked = slices.DeleteFunc(s.unacked, func(a acceptance) bool { return a.arrived(now) })
		s.unacked = append(s.unacked, acceptance{number - 1, now})
	}
	s.accepted = max(s.accepted, number)
}

// handled returns the number up to which everything that was delivered was accepted.
func (s *subscription) handled() uint64 {
	if s.accepted < s.sent {
		return s.accepted
	}
	return s.read
}

// arrivedUpTo returns the number up to which everything that was delivered has certainly
// arrived.
func (s *subscription) arrivedUpTo(now time.Time) uint64 {
	certain := s.handled()
	for _, a := range s.unacked {
		if !a.arrived(now) {
			certain = min(certain, a.after)
		}
	}
	return certain
}

// rewind moves the position to the number after which a new connection, which has accepted
// nothing yet, continues.
func (s *subscription) rewind(read uint64) {
	s.read, s.sent, s.accepted, s.unacked = read, read, read, nil
}

// merge adds the subscription of another connection of the same identity, as far as there is
// room for its patterns. Notices that only one of the two received are delivered again, and
// so are those that were delivered and not accepted: an Ack for them would no longer count.
func (s *subscription) merge(o *subscription) {
	for _, p := range o.patterns {
		if len(s.patterns) < maxPatterns && !slices.Contains(s.patterns, p) {
			s.patterns = append(s.patterns, p)
		}
	}
	s.since, s.read, s.resendTo = min(s.since, o.since), min(s.handled(), o.handled()), max(s.resendTo, o.resendTo)
	s.sent, s.accepted, s.gap = s.read, s.read, s.gap || o.gap
}
