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
	return subscriber{s.peer.Principal.ID, cmp.Or(s.id, s.offered())}
}

// unsubscribed keeps the subscription of a session that ends for its successor, or
// gives it to one that is here already. Callers hold Hub.mu.
func (b *topics) unsubscribed(s *Session) {
	key := cmp.Or(s.heir, s.subscriber())
	left := slices.DeleteFunc(b.heirs[key], func(o *Session) bool { return o == s })
	if b.heirs[key] = left; len(left) == 0 {
		delete(b.heirs, key)
	}
	sub := b.here[s]
	delete(b.here, s)
	now := time.Now()
	b.forget(now)
	from := len(b.recent)
	own := false
	for from > 0 && now.Sub(b.recent[from-1].at) < doubtful {
		from--
		own = own || s.heir != (subscriber{}) && b.recent[from].to == s.heir
	}
	certain := b.first + uint64(from) - 1
	switch {
	case sub == nil && !own:
		return
	case sub == nil:
		sub = &subscription{since: certain, next: certain, told: certain, taken: certain}
	}
	if sub.taken < sub.told {
		sub.next = sub.taken
	}
	least := sub.since
	if own {
		sub.again, least = b.last(), min(least, certain)
	}
	sub.next = max(least, min(sub.next, certain))
	sub.told, sub.taken, sub.until = sub.next, sub.next, now.Add(b.keep)
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

// goOn has a session take over what another one left. Callers hold Hub.mu.
func (b *topics) goOn(s *Session, sub *subscription) {
	if own := b.here[s]; own != nil {
		own.join(sub)
	} else {
		b.here[s] = sub
	}
	s.feed.notice()
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
func (t *Task) addressee() subscriber {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.worker == nil {
		return subscriber{}
	}
	return t.worker.heir
}

// done reports whether the task has ended well.
func (t *Task) done() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == Ended && t.events[len(t.events)-1].Body.Kind() == core.KindDone
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
