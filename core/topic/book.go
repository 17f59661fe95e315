package topic

import (
	"cmp"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Options are the options of a Book.
type Options struct {
	// Keep is how long a notice is kept, and a subscription without a connection; Bytes
	// bounds the notices that are kept.
	Keep  time.Duration
	Bytes int
	// MayReceive reports whether a subscriber, which may be an agent, may receive a notice. It
	// must not call the Book.
	MayReceive func(n Notice, subscriber core.Principal, agent core.AgentID) bool
	// Tell tells the Book of another hub, once and in order, or that hub is reported as gone. It must
	// not wait and must not call the Book. nil for a hub alone.
	Tell func(hub string, w Word)
}

// Task is a notice as its publisher and its addressee see it.
type Task interface {
	// IsDone reports whether the notice reached its addressee. It is called without the
	// lock of the Book.
	IsDone() bool
}

// Notice is a published notice.
type Notice struct {
	// ID is that of its task.
	ID    core.TaskID
	Topic string
	// From is the publisher, and By its connection, which does not receive the notice.
	From core.Principal
	By   Subscriber
	// To is the connection of the addressee; nil for a notice to subscribers alone.
	To Subscriber
	// Size is about how many bytes it takes in memory.
	Size int
	// Task comes back with each Delivery.
	Task Task
}

// entry is a notice in the log.
type entry struct {
	Notice
	to Identity // the addressee across reconnects; zero if it does not resume
	at time.Time
	// only is the identity that it was kept for at another hub, and certain says that it may have it
	// whatever its patterns are; except is one that has it from there already.
	only, except Identity
	certain      bool
}

// Delivery is what a subscriber receives: a notice or a gap.
type Delivery struct {
	Task Task
	// Position is passed to Ack.
	Position Position
	// Gap tells which notices are gone, some of which may have been for the subscriber.
	Gap *Gap
}

// Gap is a part of the log that is gone: the numbers from From to To.
type Gap struct{ From, To uint64 }

// Position identifies a notice that a subscriber received.
type Position struct {
	sub    *subscription
	number uint64
}

// Book holds the log of notices and the subscriptions. It is safe for concurrent use; the
// package documentation says which calls must not overlap.
type Book struct {
	opts Options

	mu          sync.Mutex
	log         fifo.Queue[entry] // the numbers of which are first, first+1 and so on
	first       uint64
	bytes       int
	connections map[Subscriber]*connection
	reading     map[*connection]struct{} // those that have a subscription
	successors  map[Identity][]*connection
	away        *lru.Cache[Identity, *subscription]

	hubs      map[string]struct{}               // the others of the cluster that are up
	elsewhere *lru.Cache[at, []string]          // the patterns of identities at those
	lost      *lru.Cache[Identity, []string]    // and what is not kept any more, here or at those that are gone
	heirs     *lru.Cache[Identity, string]      // the hubs where identities resumed that are connected here still
	moved     *lru.Cache[Identity, moved]       // subscriptions that have gone to other hubs
	passed    *lru.Cache[core.TaskID, Identity] // notices that came with a subscription
}

// NewBook makes a Book.
func NewBook(opts Options) *Book {
	b := &Book{
		hubs: map[string]struct{}{}, elsewhere: lru.New(lru.Options[at, []string]{Count: maxElsewhere}),
		lost:  lru.New(lru.Options[Identity, []string]{Count: maxElsewhere, Age: opts.Keep}),
		heirs: lru.New(lru.Options[Identity, string]{Count: maxPassed, Age: opts.Keep}),
		moved: lru.New(lru.Options[Identity, moved]{Count: maxPassed, Age: redeliverWindow}), passed: lru.New(lru.Options[core.TaskID, Identity]{Count: maxPassed, Age: opts.Keep}),
		opts: opts, first: 1,
		connections: map[Subscriber]*connection{}, reading: map[*connection]struct{}{},
		successors: map[Identity][]*connection{},
	}
	b.away = lru.New(lru.Options[Identity, *subscription]{
		Count: maxAway, Age: opts.Keep,
		Owner: func(_ Identity, sub *subscription) string { return sub.last.Account() },
		Evicted: func(who Identity, sub *subscription) {
			if time.Since(sub.left) < opts.Keep {
				b.lost.Put(who, sub.patterns) // else it is gone when it was said to be
			}
		},
	})
	return b
}

// last is the number of the latest notice. Callers hold mu.
func (b *Book) last() uint64 { return b.first + uint64(b.log.Len()) - 1 }

// trim drops the notices that are no longer kept. Callers hold mu.
func (b *Book) trim(now time.Time) {
	for b.log.Len() > 0 && (b.bytes > b.opts.Bytes || now.Sub(b.log.First().at) > b.opts.Keep) {
		dropped, _ := b.log.Pop()
		b.bytes -= dropped.Size
		b.first++
	}
}

// Publish adds a notice to the log, and reports whether it has subscribers that may receive
// it, connected or away. For an addressee that resumes it is kept either way: its
// connection may lose it.
func (b *Book) Publish(n Notice) (wanted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.trim(now)
	b.follow(n)
	var wake []*connection
	var passed []*subscription // have read everything, and do not want this notice
	for c := range b.reading {
		switch {
		case c.sub.wants(n.Topic) && b.mayReceive(n, c):
			wake = append(wake, c)
		case c.sub.read == b.last():
			passed = append(passed, c.sub)
		}
	}
	wanted = len(wake) > 0 || b.hasReceiver(n)
	e := entry{Notice: n, at: now}
	e.except, _ = b.passed.Get(n.ID)
	if c := b.connections[n.To]; c != nil {
		e.to = c.resumes
	}
	if !wanted && e.to == (Identity{}) {
		return false
	}
	b.log.Push(e)
	b.bytes += n.Size
	for _, sub := range passed {
		sub.read = b.last()
	}
	for _, c := range wake {
		c.peer.Wake()
	}
	return wanted
}

// hasReceiver reports whether a subscription without a connection wants a notice. Callers hold
// mu.
func (b *Book) hasReceiver(n Notice) bool {
	for who, sub := range b.away.All() {
		if sub.wants(n.Topic) && b.opts.MayReceive(n, sub.last, who.Agent) {
			return true
		}
	}
	return false
}

// mayReceive reports whether a connection may receive a notice. Callers hold mu.
func (b *Book) mayReceive(n Notice, c *connection) bool {
	return c.peer != n.By && b.opts.MayReceive(n, c.peer.Principal(), c.who.Agent)
}

// Next returns what the subscriber receives next, and wakes it if there may be more. It
// reports false when there is nothing. One goroutine calls it for a subscriber.
func (b *Book) Next(s Subscriber) (Delivery, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		c := b.connections[s]
		if c == nil || c.sub == nil {
			return Delivery{}, false
		}
		sub := c.sub
		if gap := b.gapBefore(sub); gap != nil {
			s.Wake()
			return Delivery{Gap: gap}, true
		}
		if sub.read >= b.last() {
			if sub.isIdle(time.Now()) {
				b.setSubscription(c, nil)
			}
			return Delivery{}, false
		}
		number := sub.read + 1
		e := b.log.Items()[number-b.first]
		toItself := e.to != (Identity{}) && e.to == c.resumes
		resend := false
		if toItself && number <= sub.resendTo {
			b.mu.Unlock()
			resend = e.Task.IsDone() // else its publisher knows that it was not delivered
			b.mu.Lock()
			if !b.comesNext(s, number, c, sub) {
				continue
			}
		}
		sub.read = number
		if toItself && number > sub.resendTo {
			continue // it gets this one as the addressee
		}
		if resend || b.isFor(c, number, e) {
			sub.give(number)
			s.Wake()
			return Delivery{Task: e.Task, Position: Position{sub, number}}, true
		}
	}
}

// gapBefore returns the notices that a subscription has missed before those that come next, nil for none. Callers
// hold mu.
func (b *Book) gapBefore(sub *subscription) *Gap {
	switch {
	case sub.gap:
		sub.gap = false
		return &Gap{From: sub.read, To: sub.read}
	case sub.read+1 < b.first:
		gap := &Gap{From: sub.read + 1, To: b.first - 1}
		sub.read = gap.To
		return gap
	}
	return nil
}

// comesNext reports whether a notice is still the next one of a subscription. Callers hold mu.
func (b *Book) comesNext(s Subscriber, number uint64, c *connection, sub *subscription) bool {
	return b.connections[s] == c && c.sub == sub && sub.read+1 == number && number >= b.first
}

// isFor reports whether a notice is for the subscriber of a connection. Callers hold mu.
func (b *Book) isFor(c *connection, number uint64, e entry) bool {
	who := cmp.Or(c.resumes, c.who)
	return e.certain && e.only == who || e.isFor(who) && number > c.sub.since && c.sub.wants(e.Topic) && b.mayReceive(e.Notice, c)
}

// Ack records that the transport of the subscriber accepted a notice. It does nothing for a
// notice that was delivered before the subscription was merged with another: that one
// is delivered again.
func (b *Book) Ack(s Subscriber, p Position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.connections[s]; c != nil && c.sub != nil && c.sub == p.sub {
		c.sub.ack(p.number, time.Now())
	}
}
