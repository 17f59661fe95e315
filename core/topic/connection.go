package topic

import (
	"cmp"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// The limits on the patterns of one connection, and on subscriptions that are kept without
// a connection.
const (
	maxPatterns = 64
	maxAway     = 4096
)

// Identity identifies a subscriber across reconnects: by its principal and, for an agent,
// its id.
type Identity struct {
	Principal string
	Agent     core.AgentID
}

// Subscriber is a connection that may subscribe. Values are compared with ==.
type Subscriber interface {
	// Wake is called when Next may return something. It is called with the lock of the Book
	// held: it must neither block nor call the Book.
	Wake()
	// Principal returns who subscribes. It must not call the Book.
	Principal() core.Principal
}

// connection is a Subscriber that the Book knows. Book.mu guards it.
type connection struct {
	peer Subscriber
	who  Identity
	// resumes is the identity whose subscription it continues, and whose redeliveries it
	// receives; zero before Resume.
	resumes Identity
	sub     *subscription // nil while it has nothing to read
}

// known returns the connection of a subscriber, a new one if necessary. Callers hold mu.
func (b *Book) known(s Subscriber, who Identity) *connection {
	c := b.connections[s]
	if c == nil {
		c = &connection{peer: s}
		b.connections[s] = c
	}
	c.who = who
	return c
}

// setSubscription sets what a connection reads, or nothing. Callers hold mu.
func (b *Book) setSubscription(c *connection, sub *subscription) {
	if c.sub = sub; sub == nil {
		delete(b.reading, c)
	} else {
		b.reading[c] = struct{}{}
	}
}

// Subscribe adds patterns of topics to the subscription of the subscriber, from now on. It
// returns an invalid Fault for a bad pattern, and an overloaded Fault for too many.
func (b *Book) Subscribe(s Subscriber, who Identity, patterns []string) error {
	if len(patterns) == 0 {
		return core.NewFault(core.CodeInvalid, "no topics: send at least one, such as family.*")
	}
	for _, p := range patterns {
		if err := CheckPattern(p); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.known(s, who)
	sub := c.sub
	if sub == nil {
		sub = newSubscription(b.last())
	}
	all := slices.Clone(sub.patterns)
	for _, p := range patterns {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	if len(all) > maxPatterns {
		return core.NewFault(core.CodeOverloaded, "%d topics, the limit is %d for each peer: use * and >", len(all), maxPatterns)
	}
	if len(sub.patterns) == 0 {
		sub.since = b.last()
		if sub.read >= sub.resendTo {
			sub.read = sub.since
		}
	}
	sub.patterns = all
	b.setSubscription(c, sub)
	b.subscribed(cmp.Or(c.resumes, who), all)
	return nil
}

// Unsubscribe removes patterns, written as in Subscribe, or all of them when there are
// none. It reports whether there were any.
func (b *Book) Unsubscribe(s Subscriber, patterns []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.connections[s]
	if c == nil || c.sub == nil {
		return false
	}
	before := len(c.sub.patterns)
	c.sub.patterns = slices.DeleteFunc(c.sub.patterns, func(p string) bool { return len(patterns) == 0 || slices.Contains(patterns, p) })
	changed := len(c.sub.patterns) < before
	if changed {
		b.subscribed(cmp.Or(c.resumes, c.who), c.sub.patterns)
	}
	if c.sub.isIdle(time.Now()) {
		b.setSubscription(c, nil)
	}
	return changed
}

// Identify changes the identity of a subscriber: its connection has become that of an
// agent. The subscription that it resumed stays.
func (b *Book) Identify(s Subscriber, who Identity) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.connections[s]; c != nil {
		c.who = who
	}
}

// Resume makes the subscriber continue the subscription of an earlier connection of the
// same identity, whether that has detached or will, and delivers again the notices that
// were addressed to that identity and may not have arrived. A second Resume does nothing.
func (b *Book) Resume(s Subscriber, who Identity) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.known(s, who)
	if c.resumes != (Identity{}) {
		return
	}
	c.resumes = who
	b.successors[who] = append(b.successors[who], c)
	b.heirs.Remove(who)
	b.moved.Remove(who)
	if sub, found := b.away.Remove(who); found {
		b.adopt(c, sub)
	}
	b.restore(c, who)
	b.tell(Word{Resumed: &who})
}

// Detach removes a connection that has ended. Its subscription goes to another connection
// that resumed the identity, or is kept for one that will.
func (b *Book) Detach(s Subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.connections[s]
	if c == nil {
		return
	}
	sub, now := c.sub, time.Now()
	b.setSubscription(c, nil)
	delete(b.connections, s)
	who := cmp.Or(c.resumes, c.who)
	others := slices.DeleteFunc(b.successors[who], func(o *connection) bool { return o == c })
	if b.successors[who] = others; len(others) == 0 {
		delete(b.successors, who)
	}
	b.trim(now)
	if sub = b.remainder(c, sub, now); sub == nil {
		b.subscribed(who, nil)
		return
	}
	if len(others) > 0 {
		b.adopt(others[len(others)-1], sub)
		return
	}
	if before, found := b.away.Get(who); found {
		sub.merge(before)
	}
	sub.last = s.Principal()
	if hub, found := b.heirs.Remove(who); found {
		if _, up := b.hubs[hub]; up {
			b.pass(hub, who, sub)
			return
		}
	}
	b.keepAway(who, sub)
}

// keepAway keeps a subscription for the next connection of an identity. Callers hold mu.
func (b *Book) keepAway(who Identity, sub *subscription) {
	sub.left = time.Now()
	b.away.Put(who, sub)
}

// remainder returns what is left of the subscription of a connection that has ended, from
// after what has certainly arrived; nil if nothing is left. Callers hold mu.
func (b *Book) remainder(c *connection, sub *subscription, now time.Time) *subscription {
	if sub != nil && sub.isIdle(now) {
		sub = nil
	}
	resends := false // whether notices that were addressed to it are redelivered
	entries := b.log.Items()
	recent := len(entries)
	for recent > 0 && now.Sub(entries[recent-1].at) < redeliverWindow {
		recent--
		resends = resends || c.resumes != (Identity{}) && entries[recent].to == c.resumes
	}
	arrived := b.first + uint64(recent) - 1
	if sub != nil {
		sub.read = sub.arrivedUpTo(now)
		resends = resends || sub.read < sub.resendTo
	}
	switch {
	case sub == nil && !resends:
		return nil
	case sub == nil:
		sub = newSubscription(b.last())
		sub.read, sub.resendTo = arrived, b.last()
	case resends:
		sub.read, sub.resendTo = min(sub.read, arrived), b.last()
	default:
		sub.read = max(sub.since, sub.read)
	}
	sub.rewind(sub.read)
	return sub
}

// adopt makes a connection continue a subscription in addition to its own. Callers hold mu.
func (b *Book) adopt(c *connection, sub *subscription) {
	if own := c.sub; own != nil {
		merged := *own // a copy: an Ack for the old position does not count for the new one
		merged.unacked = slices.Clone(own.unacked)
		merged.merge(sub)
		sub = &merged
	}
	b.setSubscription(c, sub)
	c.peer.Wake()
}
