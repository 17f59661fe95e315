package hub

import (
	"cmp"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// subscriber is who subscribes, beyond his connections.
type subscriber struct {
	principal string
	id        core.AgentID
}

// doubtful is for how long what a transport took may have been lost with it: longer
// than it takes to notice a dead connection.
const doubtful = time.Minute

// Resubscribe makes the session one that goes on where an earlier one of the same
// principal and agent id stopped, be that gone already or ended later: with what that
// subscribed to, and with the notices that were for the agent itself. What the earlier
// transport took within the last minute comes once more, since nobody knows whether it
// arrived.
func (s *Session) Resubscribe() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed || s.heir != (subscriber{}) {
		return
	}
	b := &h.topics
	s.heir = s.subscriber()
	b.heirs[s.heir] = append(b.heirs[s.heir], s)
	sub := b.away[s.heir]
	delete(b.away, s.heir)
	if sub != nil && !time.Now().After(sub.until) {
		b.goOn(s, sub)
	}
}

// subscriber returns who the session is beyond itself. Callers hold Hub.mu.
func (s *Session) subscriber() subscriber {
	return subscriber{s.identity.Principal.ID, cmp.Or(s.id, s.offered())}
}

// unsubscribed keeps the subscription of a session that ends for its successor, or
// gives it to one that is here already. Callers hold Hub.mu.
func (b *topics) unsubscribed(s *Session) {
	key := cmp.Or(s.heir, s.subscriber())
	left := slices.DeleteFunc(b.heirs[key], func(o *Session) bool { return o == s })
	if b.heirs[key] = left; len(left) == 0 {
		delete(b.heirs, key)
	}
	sub, now := b.here[s], time.Now()
	delete(b.here, s)
	if sub != nil && sub.spent(now) {
		sub = nil
	}
	if sub == nil && s.heir == (subscriber{}) {
		return
	}
	b.forget(now)
	from := len(b.recent)
	own := false // there may be something for himself
	for from > 0 && now.Sub(b.recent[from-1].at) < doubtful {
		from--
		own = own || s.heir != (subscriber{}) && b.recent[from].to == s.heir
	}
	certain := b.first + uint64(from) - 1
	if sub != nil {
		sub.next = sub.doubt(now)
		own = own || sub.next < sub.again
	}
	switch {
	case own && sub == nil:
		sub = &subscription{since: b.last(), next: certain, again: b.last()}
	case own:
		sub.next, sub.again = min(sub.next, certain), b.last()
	case sub == nil:
		return
	default:
		sub.next = max(sub.since, sub.next)
	}
	sub.told, sub.taken, sub.lately, sub.until = sub.next, sub.next, nil, now.Add(b.keep)
	if len(left) > 0 {
		b.goOn(left[len(left)-1], sub)
		return
	}
	if before := b.away[key]; before != nil {
		sub.join(before)
	} else if len(b.away) >= awayMost {
		b.forgetOne()
	}
	b.away[key] = sub
}

// taking is when a transport began to take notices behind the number, within a moment.
type taking struct {
	behind uint64
	at     time.Time
}

// moment is how exactly it is known when a transport took a notice.
const moment = time.Second

// took notes that the transport took a notice, in the order in which they were given.
func (s *subscription) took(number uint64, now time.Time) {
	if n := len(s.lately); n == 0 || now.Sub(s.lately[n-1].at) >= moment {
		s.lately = slices.DeleteFunc(s.lately, func(t taking) bool { return t.sure(now) })
		s.lately = append(s.lately, taking{number - 1, now})
	}
	s.taken = max(s.taken, number)
}

// sure reports whether all that was taken in that moment has arrived.
func (t taking) sure(now time.Time) bool { return now.Sub(t.at) >= doubtful+moment }

// doubt is the number behind which what the subscriber was given may not have arrived.
func (s *subscription) doubt(now time.Time) uint64 {
	least := s.next
	if s.taken < s.told {
		least = s.taken
	}
	for _, t := range s.lately {
		if !t.sure(now) {
			least = min(least, t.behind)
		}
	}
	return least
}

// goOn has a session take over what another one left. Callers hold Hub.mu.
func (b *topics) goOn(s *Session, sub *subscription) {
	if own := b.here[s]; own != nil {
		joined := *own // in a place of its own: what is on its way was told as of the old one
		joined.lately = slices.Clone(own.lately)
		joined.join(sub)
		sub = &joined
	}
	b.here[s] = sub
	s.inbox.notice()
}

// join adds what another connection of the same subscriber subscribed to, as far as
// there is room for it. What only one of them was told comes to both.
func (s *subscription) join(o *subscription) {
	for _, p := range o.patterns {
		if len(s.patterns) < topicsMost && !slices.Contains(s.patterns, p) {
			s.patterns = append(s.patterns, p)
		}
	}
	s.since, s.next, s.again = min(s.since, o.since), min(s.next, o.next), max(s.again, o.again)
	s.told, s.taken = s.next, s.next
	if s.until.Before(o.until) {
		s.until = o.until
	}
}

// addressee returns who the notice was given to, if he goes on over connections; else
// it is zero. Callers hold Hub.mu.
func (j *job) addressee() subscriber {
	if w, given := j.Worker().(*worker); given {
		return w.heir
	}
	return subscriber{}
}

// forgetOne makes room for one who is away.
func (b *topics) forgetOne() {
	var key subscriber
	var oldest *subscription
	for k, sub := range b.away {
		if oldest == nil || sub.until.Before(oldest.until) {
			key, oldest = k, sub
		}
	}
	delete(b.away, key)
}
