package hub

import (
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/topic"
)

// ownTopics begins the topics that the hub and its peers use between themselves;
// subscribers never hear them.
const ownTopics = "dragoman."

// subscriber is a session as the book of topics knows it.
type subscriber Session

func (s *Session) subscriber() *subscriber { return (*subscriber)(s) }

// Wake implements [topic.Subscriber].
func (s *subscriber) Wake() { s.inbox.push(Batch{Role: task.Subscriber}) }

// Subscribe gives the session, from now on, every notice of the topics, in which *
// stands for one word and > at the end for all that follows. They come from Next in the
// role of a Subscriber. It returns an invalid Fault for what is no topic, an overloaded
// one when the session has too many, and an unreachable one when it has ended.
func (s *Session) Subscribe(patterns []string) error {
	return s.doing(core.Subscribe{Topics: patterns}, func() error { return s.subscribe(patterns) })
}

func (s *Session) subscribe(patterns []string) error {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return core.NewFault(core.CodeUnreachable, "the connection has ended")
	}
	return h.topics.Subscribe(s.subscriber(), s.subscriberID(), patterns)
}

// Unsubscribe undoes Subscribe for the topics as they were given there, or for all
// of them when there are none. It reports whether there was anything to undo.
func (s *Session) Unsubscribe(patterns []string) bool {
	return s.hub.topics.Unsubscribe(s.subscriber(), patterns)
}

// Resubscribe makes the session continue what an earlier one of the same principal and
// agent id subscribed to, be that gone already or gone later. Notices that were addressed
// to the agent itself, and what the earlier transport accepted within the last minute,
// are given again: they may not have arrived.
func (s *Session) Resubscribe() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.closed {
		h.topics.Resume(s.subscriber(), s.subscriberID())
	}
}

// deliver gives a task to whom it is addressed, and a notice to those too who subscribe
// to its topic unless it is private. One for the hub is for subscribers alone. Topics of
// the hub's own are refused: peers act on them.
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

// publish gives a notice to subscribers, and reports whether there are any.
func (h *Hub) publish(t *job) bool {
	n := topic.Notice{Topic: t.Notice().Topic, From: t.From(), By: t.opener.root().subscriber(), Size: task.Overhead + t.Size(), Task: t.Task}
	if w, given := t.Worker().(*worker); given {
		n.To = (*subscriber)(w)
	}
	return h.topics.Publish(n)
}

// mayHear reports whether an agent, or "" for who is none, may hear what the principal
// publishes: whoever the principal may address.
func (h *Hub) mayHear(from core.Principal, id core.AgentID) bool {
	return h.authorizer.AllowAgent(from, id) == nil
}

// nextNotice returns the next notice or gap that the session is to be given, if any.
func (s *Session) nextNotice() (Batch, bool) {
	d, ok := s.hub.topics.Next(s.subscriber())
	switch {
	case !ok:
		return Batch{}, false
	case d.Gap != nil:
		return Batch{Role: task.Subscriber, Gap: (*task.Gap)(d.Gap)}, true
	}
	t := d.Task.(*task.Task)
	return Batch{Task: t, Role: task.Subscriber, Tag: d.Position, Events: t.Events()[:1]}, true
}

// NoticeDelivered notes that the transport accepted a notice of a topic, which Next
// returned with the tag. What the session asks within [Limits.CauseMemory] counts as
// because of it, one hop further (promise P10): two that answer each other by topics come
// to an end.
func (s *Session) NoticeDelivered(t *task.Task, tag any) {
	at, ok := tag.(topic.Position)
	if !ok {
		return
	}
	s.hub.topics.Ack(s.subscriber(), at)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.until) && s.last.chain.Hops > t.Hops() {
		return // what it acts because of has come further already
	}
	s.last, s.until = cause{task: t.ID(), chain: policy.Chain{Hops: t.Hops()}, over: true}, now.Add(s.hub.limits.CauseMemory)
}
