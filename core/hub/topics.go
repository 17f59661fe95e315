package hub

import (
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/topic"
)

// ownTopics is the prefix of topics that the hub and its peers use among themselves.
// Subscribers do not get them.
const ownTopics = "dragoman."

// Wake implements [topic.Subscriber].
func (p *peer) Wake() { p.inbox.push(Batch{Role: task.Subscriber}) }

// Subscribe subscribes the session to topics, in which * stands for one word and > at the
// end for all that follow. Notices come from Next in the role of a Subscriber. It returns
// an invalid Fault for a bad topic, an overloaded Fault when the session has too many, and
// an unreachable Fault when it has ended.
func (s *Session) Subscribe(patterns []string) error {
	return s.doFunc(core.Subscribe{Topics: patterns}, func() error { return s.subscribe(patterns) })
}

func (s *Session) subscribe(patterns []string) error {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return s.ended()
	}
	return h.topics.Subscribe(s.peer(), s.subscriberID(), patterns)
}

// Unsubscribe ends subscriptions to the given topics, written as in Subscribe, or to all of
// them when there are none. It reports whether there were any.
func (s *Session) Unsubscribe(patterns []string) bool {
	return s.hub.topics.Unsubscribe(s.peer(), patterns)
}

// Resubscribe makes the session continue the subscriptions of an earlier session of the
// same principal and agent id, whether that has ended or will. Notices that were addressed
// to the agent itself, and those that the earlier transport accepted within the last
// minute, come again: they may not have arrived.
func (s *Session) Resubscribe() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.closed {
		h.topics.Resume(s.peer(), s.subscriberID())
	}
}

// deliver routes a task, and publishes a notice to the subscribers of its topic unless it
// is private. A notice to the hub is for subscribers alone. The hub's own topics are
// refused: peers act on them.
func (h *Hub) deliver(t *job, private bool) error {
	if topic := t.Topic(); strings.HasPrefix(topic, ownTopics) {
		return core.NewFault(core.CodeInvalid, "the topic %q is the hub's own: choose another", topic)
	}
	if t.To().Reach() != core.ReachHub {
		err := h.route(t)
		if err == nil && t.IsNotice() && !private {
			h.publish(t)
			h.publishElsewhere(t, false)
		}
		return err
	}
	has := h.publish(t)
	there := h.publishElsewhere(t, !has)
	switch {
	case has:
		t.End(core.Done{})
	case !there:
		return unsubscribed(t.Topic())
	} // else it ends with what the other hubs say
	return nil
}

// publish publishes a notice, and reports whether it has subscribers.
func (h *Hub) publish(t *job) bool {
	n := topic.Notice{ID: t.ID(), Topic: t.Topic(), From: t.From(), By: t.opener.root().peer(), Size: task.OverheadBytes + t.Size(), Task: t.Task}
	if w, given := t.Worker().(*peer); given {
		n.To = w
	}
	return h.topics.Publish(n)
}

// mayReceive reports whether a subscriber may get a notice: the publisher must be allowed to ask
// it, or, if it is no agent, it to read what the publisher asks. Nobody gets a notice for an agent
// that it may not see.
func (h *Hub) mayReceive(n topic.Notice, p core.Principal, agent core.AgentID) bool {
	t, isTask := n.Task.(*task.Task)
	if !isTask {
		return false
	}
	to := t.To().Agent()
	switch {
	case to != "" && to != agent && !h.authorizer.May(p, core.RightSee, h.ofAgent(to)):
		return false
	case h.authorizer.May(n.From, core.RightAsk, h.ofAgent(agent)):
		return true
	}
	return agent == "" && h.mayRead(p, h.ofWork(n.From, to))
}

// nextNotice returns the next notice or gap for the session, if any.
func (s *Session) nextNotice() (Batch, bool) {
	d, ok := s.hub.topics.Next(s.peer())
	switch {
	case !ok:
		return Batch{}, false
	case d.Gap != nil:
		return Batch{Role: task.Subscriber, Gap: (*task.Gap)(d.Gap)}, true
	}
	t := d.Task.(*task.Task)
	return Batch{Task: t, Role: task.Subscriber, Tag: d.Position, Events: t.Events()[:1]}, true
}

// NoticeDelivered records that the transport accepted a notice, which Next returned with
// the tag. What the session asks within [Limits.CauseMemory] counts as caused by it, one
// hop further (promise P10), so that two sessions that answer each other by topics stop.
func (s *Session) NoticeDelivered(t *task.Task, tag any) {
	at, ok := tag.(topic.Position)
	if !ok {
		return
	}
	s.hub.topics.Ack(s.peer(), at)
	s.mu.Lock()
	if now := time.Now(); now.After(s.until) || t.Hops() >= s.last.chain.Hops { // else its present cause has more hops
		s.last, s.until = cause{task: t.ID(), chain: policy.Chain{Hops: t.Hops()}, over: true}, now.Add(s.hub.limits.CauseMemory)
	}
	s.mu.Unlock()
	if s.tellsHops() {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		s.tellHops()
	}
}
