package hub

import (
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// ownTopics begins the topics that the hub and its peers use between themselves;
// nobody else hears them.
const ownTopics = "dragoman."

// The bounds of subscriptions: topics of one session, and peers that are away.
const (
	topicsMost = 64
	awayMost   = 4096
)

// topics are who wants to hear of which topics, and the notices of late. Everybody
// reads those at a pace of his own, from his own place in them. Hub.mu guards it.
type topics struct {
	keep      time.Duration
	mostBytes int

	here   map[*Session]*subscription
	away   map[subscriber]*subscription
	heirs  map[subscriber][]*Session // see [Session.Resubscribe]
	recent []published               // the numbers of which are first, first+1 and so on
	first  uint64
	bytes  int
}

type subscription struct {
	patterns []string
	// since is the number behind which it began, next the one behind which the
	// subscriber goes on, told that of the last notice he was given, and taken that of
	// the last one that his transport took. Up to again he gets what was for himself
	// once more.
	since, next, told, taken, again uint64
	until                           time.Time // of one who is away: how long he is waited for
	lately                          []taking  // what his transport took so late that it may be lost with it
}

// hearing is the tag of a notice that a subscriber is given.
type hearing struct {
	sub    *subscription
	number uint64
}

// spent reports whether a subscription has nothing to give any more.
func (s *subscription) spent(now time.Time) bool {
	return len(s.patterns) == 0 && s.doubt(now) >= s.again
}

// published is a notice that others than its addressee may hear, or he once more.
type published struct {
	task *job
	to   subscriber // the addressee, if he goes on over connections
	at   time.Time
	size int
}

func newTopics(l Limits) topics {
	return topics{
		keep: l.KeepNotices, mostBytes: l.NoticeBytes, first: 1,
		here: map[*Session]*subscription{}, away: map[subscriber]*subscription{}, heirs: map[subscriber][]*Session{},
	}
}

// last is the number of the latest notice.
func (b *topics) last() uint64 { return b.first + uint64(len(b.recent)) - 1 }

func (s *subscription) wants(topic string) bool {
	return slices.ContainsFunc(s.patterns, func(p string) bool { return core.MatchTopic(p, topic) })
}

// Subscribe has the session hear, from now on, of every notice of the topics, in
// which * stands for one word and > at the end for all that follows. They come from
// Next in the role of a Subscriber. It returns an invalid Fault for what is no topic,
// and an overloaded one when the session has too many.
func (s *Session) Subscribe(patterns []string) error {
	return s.doing(core.Subscribe{Topics: patterns}, func() error { return s.subscribe(patterns) })
}

func (s *Session) subscribe(patterns []string) error {
	if len(patterns) == 0 {
		return core.NewFault(core.CodeInvalid, "no topics: say which, such as family.*")
	}
	for _, p := range patterns {
		if err := core.CheckTopicPattern(p); err != nil {
			return err
		}
	}
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return core.NewFault(core.CodeUnreachable, "the connection has ended")
	}
	sub := h.topics.here[s]
	if sub == nil {
		at := h.topics.last()
		sub = &subscription{since: at, next: at, told: at, taken: at}
	}
	all := slices.Clone(sub.patterns)
	for _, p := range patterns {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	if len(all) > topicsMost {
		return core.NewFault(core.CodeOverloaded, "%d topics are more than the %d that a peer may have: use * and >", len(all), topicsMost)
	}
	if len(sub.patterns) == 0 {
		sub.since = h.topics.last()
		if sub.next >= sub.again {
			sub.next = sub.since
		}
	}
	sub.patterns = all
	h.topics.here[s] = sub
	return nil
}

// Unsubscribe undoes Subscribe for the topics as they were given there, or for all
// of them when there are none. It reports whether there was anything to undo.
func (s *Session) Unsubscribe(patterns []string) bool {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	sub := h.topics.here[s]
	if sub == nil {
		return false
	}
	before := len(sub.patterns)
	sub.patterns = slices.DeleteFunc(sub.patterns, func(p string) bool { return len(patterns) == 0 || slices.Contains(patterns, p) })
	if sub.spent(time.Now()) {
		delete(h.topics.here, s)
	}
	return len(sub.patterns) < before
}

// forget drops what is no longer kept.
func (b *topics) forget(now time.Time) {
	for len(b.recent) > 0 && (b.bytes > b.mostBytes || now.Sub(b.recent[0].at) > b.keep) {
		b.bytes -= b.recent[0].size
		b.recent[0] = published{}
		b.recent = b.recent[1:]
		b.first++
	}
	for key, sub := range b.away {
		if now.After(sub.until) {
			delete(b.away, key)
		}
	}
}

// deliver gives a task to who is to have it: a notice to those too who subscribe to
// its topic. One for the hub is for them alone. What the hub itself tells its peers
// nobody else does, whoever it is for: they act on it.
func (h *Hub) deliver(t *job, private bool) error {
	if n := t.Notice(); n != nil && strings.HasPrefix(n.Topic, ownTopics) {
		return core.NewFault(core.CodeInvalid, "the topic %q is the hub's own: choose another", n.Topic)
	}
	if t.To().Reach() != core.ReachHub {
		err := h.route(t)
		if err == nil && t.IsNotice() && !private {
			h.publish(t)
		}
		return err
	}
	if !h.publish(t) {
		return core.NewFault(core.CodeUnreachable, "nobody subscribes to %q: address an agent, or try again later", t.Notice().Topic)
	}
	t.End(core.Done{})
	return nil
}

// publish lets subscribers hear of a notice, and reports whether there are any, here
// or awaited. It keeps it for its addressee too, who may have to hear it once more.
func (h *Hub) publish(t *job) (heard bool) {
	topic := t.Notice().Topic
	h.mu.Lock()
	defer h.mu.Unlock()
	b := &h.topics
	now := time.Now()
	b.forget(now)
	var wake []*Session
	var passed []*subscription // that have heard everything, and do not hear this
	for s, sub := range b.here {
		switch {
		case sub.wants(topic) && h.mayHear(t, s, s.subscriber().id):
			wake = append(wake, s)
		case sub.next == b.last():
			passed = append(passed, sub)
		}
	}
	heard = len(wake) > 0
	for key, sub := range b.away {
		if heard {
			break
		}
		heard = sub.wants(topic) && h.mayHear(t, nil, key.id)
	}
	to := t.addressee()
	if !heard && to == (subscriber{}) {
		return false
	}
	size := task.Overhead + t.Size()
	b.recent, b.bytes = append(b.recent, published{t, to, now, size}), b.bytes+size
	for _, sub := range passed {
		sub.next = b.last()
	}
	for _, s := range wake {
		s.inbox.notice()
	}
	return heard
}

// mayHear reports whether a subscriber may hear of a notice: not who told it, nor one
// whom he may not address. Callers hold mu.
func (h *Hub) mayHear(t *job, s *Session, id core.AgentID) bool {
	return (s == nil || s != t.opener.root()) && h.rules.CheckTarget(t.From(), policy.Chain{}, id) == nil
}

// nextNotice returns the next notice that the session is to hear, or a gap where such
// may be gone. It reports false when there is none.
func (h *Hub) nextNotice(s *Session) (Batch, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := &h.topics
	sub := b.here[s]
	if sub == nil {
		return Batch{}, false
	}
	if sub.next+1 < b.first {
		gap := &task.Gap{From: sub.next + 1, To: b.first - 1}
		sub.next = gap.To
		s.inbox.notice()
		return Batch{Role: task.Subscriber, Gap: gap}, true
	}
	for sub.next < b.last() {
		p := b.recent[sub.next+1-b.first]
		sub.next++
		own := p.to != (subscriber{}) && p.to == s.heir
		switch {
		case own && sub.next > sub.again: // he is told it as the one addressed
		case own && p.task.IsDone(), sub.next > sub.since && sub.wants(p.task.Notice().Topic) && h.mayHear(p.task, s, s.subscriber().id):
			if sub.taken >= sub.told {
				sub.taken = sub.next - 1 // what he was not given since then cannot be lost
			}
			sub.told = sub.next
			s.inbox.notice() // there may be more
			return Batch{Task: p.task.Task, Role: task.Subscriber, Tag: hearing{sub, sub.next}, Events: p.task.Events()[:1]}, true
		}
	}
	if sub.spent(time.Now()) {
		delete(b.here, s) // he has what was for himself
	}
	return Batch{}, false
}

// Heard notes that the transport took a notice, which Next returned with the tag. What
// the session asks within a moment counts as because of it, one hop further (promise
// P10): those who tell each other back by topics come to an end.
func (s *Session) Heard(t *Task, tag any) {
	heard, ok := tag.(hearing)
	if !ok {
		return
	}
	h := s.hub
	h.mu.Lock()
	if h.topics.here[s] == heard.sub {
		heard.sub.took(heard.number, time.Now())
	}
	h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.until) && s.last.chain.Hops > t.Hops() {
		return // what it acts because of has come further already
	}
	s.last, s.until = cause{task: t.ID(), chain: policy.Chain{Hops: t.Hops()}, over: true}, now.Add(h.limits.CauseMemory)
}
