package topic

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// A cluster has a Book at each hub. A notice is published in all of them. A subscription is at the hub
// of its connection, or of the last one; it goes to the hub where its identity resumes, with the notices
// that it has not received. While it lingers where it was, what comes there late follows it.

// Word is what the Book of one hub tells that of another. One of its members is set.
type Word struct {
	// Subscribed says what an identity has subscribed to at the hub.
	Subscribed *Subscribed
	// Resumed is an identity that has resumed at the hub.
	Resumed *Identity
	// Kept is the subscription of an identity that has resumed at the other hub.
	Kept *Kept
	// All asks for all subscriptions.
	All bool
}

// Subscribed are the patterns of an identity; none if it has none any more.
type Subscribed struct {
	Who      Identity `json:"who"`
	Patterns []string `json:"patterns,omitempty"`
}

// Kept is a part of the subscription of an identity: patterns, and notices that it has not received.
type Kept struct {
	Who      Identity
	Patterns []string
	Notices  []KeptNotice
	// Gap says that some notices are gone that may have been for it.
	Gap bool
}

// KeptNotice is a notice for an identity. To says that it was addressed to it.
type KeptNotice struct {
	Notice
	To bool
}

// Bounds of what is remembered of other hubs.
const (
	maxElsewhere = 1 << 16 // identities that have subscribed at other hubs
	maxPassed    = 4096    // identities and notices that went to another hub
)

// at is an identity at another hub.
type at struct {
	hub string
	who Identity
}

// moved is a subscription that has gone to another hub.
type moved struct {
	to string
	subscription
}

// HubUp makes another hub one that has subscribers.
func (b *Book) HubUp(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hubs[name] = struct{}{}
	b.opts.Tell(name, Word{All: true})
}

// HubGone notes which subscriptions are lost with a hub: who resumes one here has its patterns again, and
// a gap.
func (b *Book) HubGone(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.hubs, name)
	var gone []at
	for k, patterns := range b.elsewhere.All() {
		if k.hub == name {
			gone = append(gone, k)
			b.lost.Put(k.who, patterns)
		}
	}
	for _, k := range gone {
		b.elsewhere.Remove(k)
	}
	for who, c := range b.successors {
		if len(c) > 0 {
			b.restore(c[len(c)-1], who) // it had resumed already, and waited for that hub
		}
	}
}

// Missed says that this hub was not told of some notices of another one: they are a gap in all
// subscriptions.
func (b *Book) Missed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.reading {
		if len(c.sub.patterns) > 0 {
			c.sub.gap = true
			c.peer.Wake()
		}
	}
	for _, sub := range b.away.All() {
		sub.gap = true
	}
}

// restore gives a connection what its identity had at a hub that is gone, or what was not kept here, and a gap.
// Callers hold mu.
func (b *Book) restore(c *connection, who Identity) {
	patterns, lost := b.lost.Remove(who)
	if !lost {
		return
	}
	sub := newSubscription(b.last())
	sub.patterns, sub.gap = patterns, true
	b.adopt(c, sub)
}

// tell tells all other hubs. Callers hold mu.
func (b *Book) tell(w Word) {
	for _, name := range slices.Sorted(maps.Keys(b.hubs)) {
		b.opts.Tell(name, w)
	}
}

// subscribed tells the other hubs what an identity has subscribed to. Callers hold mu.
func (b *Book) subscribed(who Identity, patterns []string) {
	if len(b.hubs) > 0 {
		b.tell(Word{Subscribed: &Subscribed{who, slices.Clone(patterns)}})
	}
}

// Hear takes what the Book of another hub says.
func (b *Book) Hear(from string, w Word) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case w.Subscribed != nil:
		if k := (at{from, w.Subscribed.Who}); len(w.Subscribed.Patterns) > 0 {
			b.elsewhere.Put(k, w.Subscribed.Patterns)
		} else {
			b.elsewhere.Remove(k)
		}
	case w.Resumed != nil:
		b.lost.Remove(*w.Resumed)
		b.resumedAt(from, *w.Resumed)
	case w.Kept != nil:
		b.hearKept(*w.Kept)
	case w.All:
		for _, c := range b.connections {
			if c.sub != nil && len(c.sub.patterns) > 0 {
				b.opts.Tell(from, Word{Subscribed: &Subscribed{cmp.Or(c.resumes, c.who), slices.Clone(c.sub.patterns)}})
			}
		}
		for who, sub := range b.away.All() {
			b.opts.Tell(from, Word{Subscribed: &Subscribed{who, slices.Clone(sub.patterns)}})
		}
	}
}

// resumedAt gives the subscription of an identity to the hub where it has resumed, now or once its
// connection here ends. Callers hold mu.
func (b *Book) resumedAt(hub string, who Identity) {
	if sub, found := b.away.Remove(who); found {
		b.pass(hub, who, sub)
		return
	}
	b.heirs.Put(who, hub)
}

// pass gives a subscription to another hub. Callers hold mu.
func (b *Book) pass(hub string, who Identity, sub *subscription) {
	k := &Kept{Who: who, Patterns: sub.patterns, Gap: sub.gap || sub.read+1 < b.first}
	for i, e := range b.log.Items() {
		number := b.first + uint64(i)
		if number <= sub.read {
			continue
		}
		to := e.to == who
		switch {
		case to && number > sub.resendTo: // it gets this one as the addressee
		case to || e.isFor(who) && number > sub.since && sub.wants(e.Topic) && b.opts.MayReceive(e.Notice, sub.last, who.Agent):
			k.Notices = append(k.Notices, KeptNotice{e.Notice, to})
		}
	}
	b.opts.Tell(hub, Word{Kept: k})
	b.moved.Put(who, moved{hub, *sub})
	b.subscribed(who, nil)
}

// isFor reports whether a notice is not for somebody else alone.
func (e entry) isFor(who Identity) bool {
	return (e.only == (Identity{}) || e.only == who) && e.except != who
}

// follow passes a notice that came late on to the hubs to which subscriptions have gone. Callers hold mu.
func (b *Book) follow(n Notice) {
	for who, m := range b.moved.All() {
		if m.wants(n.Topic) && b.opts.MayReceive(n, m.last, who.Agent) {
			b.opts.Tell(m.to, Word{Kept: &Kept{Who: who, Notices: []KeptNotice{{Notice: n}}}})
		}
	}
}

// hearKept adds what another hub has kept for an identity to its subscription here. Callers hold mu.
func (b *Book) hearKept(k Kept) {
	var c *connection
	if all := b.successors[k.Who]; len(all) > 0 {
		c = all[len(all)-1]
	}
	var own *subscription
	if c != nil {
		own = c.sub
	} else if own, _ = b.away.Get(k.Who); own == nil && len(k.Patterns) == 0 {
		return // it has left, and its subscription has gone elsewhere
	}
	last := b.last()
	for _, n := range k.Notices {
		if b.has(k.Who, own, n.ID) {
			continue
		}
		b.keep(entry{Notice: n.Notice, only: k.Who, at: time.Now(), certain: n.To}, c)
		b.passed.Put(n.ID, k.Who)
	}
	sub := newSubscription(last)
	sub.patterns, sub.gap = k.Patterns, k.Gap
	switch {
	case c != nil:
		b.adopt(c, sub)
	case own != nil:
		own.merge(sub)
	default:
		b.keepAway(k.Who, sub)
	}
	b.subscribed(k.Who, k.Patterns)
}

// keep adds a notice that only one connection gets, or nobody yet. Others that have read everything have
// read it, too. Callers hold mu.
func (b *Book) keep(e entry, by *connection) {
	var passed []*subscription
	for c := range b.reading {
		if c != by && c.sub.read == b.last() {
			passed = append(passed, c.sub)
		}
	}
	b.log.Push(e)
	b.bytes += e.Size
	for _, sub := range passed {
		sub.read = b.last()
	}
}

// has reports whether a subscription gets a notice here anyway, or has got it. Callers hold mu.
func (b *Book) has(who Identity, own *subscription, id core.TaskID) bool {
	if before, ok := b.passed.Get(id); ok && before == who {
		return true
	}
	for i, e := range b.log.Items() {
		if e.ID == id && own != nil && e.isFor(who) && b.first+uint64(i) > own.since && own.wants(e.Topic) {
			return true
		}
	}
	return false
}
