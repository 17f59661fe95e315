package topic

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Options make a Book.
type Options struct {
	// Keep is how long a notice is kept, and a subscription without a connection; Bytes
	// is how many bytes of notices are kept at most.
	Keep  time.Duration
	Bytes int
	// MayHear reports whether a subscriber may hear what somebody publishes. It must not
	// call the Book.
	MayHear func(publisher core.Principal, subscriber core.AgentID) bool
}

// Task is a notice as its publisher and its addressee know it.
type Task interface {
	// IsDone reports whether the addressee was given the notice. It is called without
	// the lock of the Book.
	IsDone() bool
}

// Notice is something that is published.
type Notice struct {
	Topic string
	// From is who publishes, By the connection that does; it does not hear itself.
	From core.Principal
	By   Subscriber
	// To is the connection that the notice was given to as the one addressed; nil for a
	// notice to subscribers alone.
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
}

// Delivery is what a subscriber is given: a notice or a gap.
type Delivery struct {
	Task Task
	// Position is to be given to Ack.
	Position Position
	// Gap says that as many notices are gone, of which some may have been for the
	// subscriber.
	Gap *Gap
}

// Gap is a part of the log that is gone: the numbers from From to To.
type Gap struct{ From, To uint64 }

// Position identifies a notice that was given to a subscriber.
type Position struct {
	sub    *subscription
	number uint64
}

// Book holds the log of notices and the subscriptions. It is safe for concurrent use; the
// package documentation says what its caller orders.
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
}

// NewBook makes a Book.
func NewBook(opts Options) *Book {
	return &Book{
		opts: opts, first: 1,
		connections: map[Subscriber]*connection{}, reading: map[*connection]struct{}{},
		successors: map[Identity][]*connection{}, away: lru.New(lru.Options[Identity, *subscription]{Count: maxAway, Age: opts.Keep}),
	}
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

// Publish gives a notice to whoever subscribes to its topic and may hear of it, and
// reports whether there is anybody, here or away. For an addressee that resumes it is
// kept either way: its connection may lose it.
func (b *Book) Publish(n Notice) (heard bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.trim(now)
	var wake []*connection
	var passed []*subscription // those that have read everything, and do not hear this
	for c := range b.reading {
		switch {
		case c.sub.wants(n.Topic) && b.mayHear(n, c):
			wake = append(wake, c)
		case c.sub.read == b.last():
			passed = append(passed, c.sub)
		}
	}
	heard = len(wake) > 0 || b.awaited(n)
	e := entry{Notice: n, at: now}
	if c := b.connections[n.To]; c != nil {
		e.to = c.resumes
	}
	if !heard && e.to == (Identity{}) {
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
	return heard
}

// awaited reports whether a subscription without a connection wants a notice. Callers
// hold mu.
func (b *Book) awaited(n Notice) bool {
	for who, sub := range b.away.All() {
		if sub.wants(n.Topic) && b.opts.MayHear(n.From, who.Agent) {
			return true
		}
	}
	return false
}

// mayHear reports whether a connection may hear of a notice. Callers hold mu.
func (b *Book) mayHear(n Notice, c *connection) bool {
	return c.peer != n.By && b.opts.MayHear(n.From, c.who.Agent)
}

// Next returns what the subscriber is to be given next, and wakes it if there may be
// more. It reports false when there is nothing. One goroutine calls it for a subscriber.
func (b *Book) Next(s Subscriber) (Delivery, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		c := b.connections[s]
		if c == nil || c.sub == nil {
			return Delivery{}, false
		}
		sub := c.sub
		switch {
		case sub.read+1 < b.first:
			gap := &Gap{From: sub.read + 1, To: b.first - 1}
			sub.read = gap.To
			s.Wake()
			return Delivery{Gap: gap}, true
		case sub.read >= b.last():
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
			resend = e.Task.IsDone() // else its publisher was told that it was not delivered
			b.mu.Lock()
			if b.connections[s] != c || c.sub != sub || sub.read+1 != number || number < b.first {
				continue
			}
		}
		sub.read = number
		if toItself && number > sub.resendTo {
			continue // it is given to it as the one addressed
		}
		if resend || number > sub.since && sub.wants(e.Topic) && b.mayHear(e.Notice, c) {
			sub.give(number)
			s.Wake()
			return Delivery{Task: e.Task, Position: Position{sub, number}}, true
		}
	}
}

// Ack notes that the transport of the subscriber accepted a notice. It does nothing for a
// notice that was given before the subscription was merged with another: that comes
// again.
func (b *Book) Ack(s Subscriber, p Position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.connections[s]; c != nil && c.sub != nil && c.sub == p.sub {
		c.sub.ack(p.number, time.Now())
	}
}
