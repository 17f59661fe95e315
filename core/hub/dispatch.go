package hub

import (
	"cmp"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/topic"
)

// Agents, their slots and their queues. Callers hold Hub.mu for everything in this file.

func (h *Hub) makeAgent(s *Session, card core.Card, opts JoinOptions) error {
	before := s.opts
	s.id, s.opts = card.ID, opts
	if e, ok := h.roster.Get(card.ID); ok && e.Hub != "" {
		h.roster.Remove(card.ID) // it has left that hub, which has not said so yet
	}
	limited := h.limitConcurrency(s, card, s.opts.Concurrent)
	if err := h.roster.Add(limited, s.member(), opts.OnlyByID); err != nil {
		s.id, s.opts = "", before
		return err
	}
	if opts.Starting {
		h.roster.Change(s.id, func(e *roster.Entry) { e.Child = &core.Child{State: core.ChildStarting} })
	}
	if p := s.identity.Principal; p.Authenticated {
		h.runs[p.ID] = append(h.runs[p.ID], s)
	}
	s.left = make(chan struct{})
	h.announce(s, card, limited)
	h.topics.Identify(s.peer(), s.subscriberID())
	h.log.Info("agent joined", "agent", card.ID, "dialect", card.Dialect, "name", card.Name)
	return nil
}

func (h *Hub) replaceCard(s *Session, card core.Card) {
	limited := h.limitConcurrency(s, card, s.opts.Concurrent)
	h.roster.SetCard(limited, s.opts.OnlyByID)
	h.announce(s, card, limited)
	h.dispatch(s)
}

// announce stores the card that an agent declared, and that card as limited by its settings.
func (h *Hub) announce(s *Session, declared, limited core.Card) {
	s.declared = declared.MaxConcurrent
	s.card.Store(&limited)
	if h.observer != nil {
		h.observer.Joined(limited)
	}
	h.announceEverywhere(s)
}

// announceEverywhere tells others of an agent that has joined or changed. They do not know one of which
// only the id is known: it is not known beyond this hub. Callers hold mu.
func (h *Hub) announceEverywhere(s *Session) {
	if h.remote == nil || s.opts.OnlyByID {
		return
	}
	if e, ok := h.roster.Get(s.id); ok {
		h.remote.Agent(s.id, s.number, s.identity.Principal, &e)
	}
}

// limitConcurrency returns the card with as many concurrent tasks as the settings of the
// agent allow.
func (h *Hub) limitConcurrency(s *Session, card core.Card, usual int) core.Card {
	limit := h.settings.of(card.ID, s.identity.Dialect).MaxConcurrent
	switch {
	case card.MaxConcurrent < 1:
		card.MaxConcurrent = cmp.Or(limit, usual)
	case limit > 0:
		card.MaxConcurrent = min(limit, card.MaxConcurrent)
	}
	card.MaxConcurrent = max(1, card.MaxConcurrent)
	return card
}

// applySettings puts changed settings of an agent into force, and tells it.
func (h *Hub) applySettings(s *Session, reason string) {
	declared := *s.card.Load()
	declared.MaxConcurrent = s.declared
	s.inbox.push(Batch{SettingsChanged: &SettingsChange{
		AgentSettings: h.settings.of(s.id, s.identity.Dialect),
		Concurrent:    h.limitConcurrency(s, declared, s.opts.Concurrent).MaxConcurrent, Reason: reason,
	}})
	h.replaceCard(s, declared)
}

func (h *Hub) removeAgent(s *Session, reason *core.Fault) {
	h.roster.Remove(s.id)
	if p := s.identity.Principal; p.Authenticated {
		if h.runs[p.ID] = slices.DeleteFunc(h.runs[p.ID], func(o *Session) bool { return o == s }); len(h.runs[p.ID]) == 0 {
			delete(h.runs, p.ID)
		}
	}
	if h.remote != nil && !s.opts.OnlyByID {
		h.remote.Agent(s.id, s.number, s.identity.Principal, nil)
	}
	close(s.left)
	if h.observer != nil {
		h.observer.Left(s.id, s.opts.OnlyByID)
	}
	log := h.log
	if hidden := detail(reason); hidden != "" {
		log = log.With("detail", hidden)
	}
	log.Info("agent left", "agent", s.id, "reason", reason.Message)
}

func (s *Session) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.work) == 0 && len(s.queue) == 0
}

// subscriberID identifies the session as a subscriber across reconnects.
func (s *Session) subscriberID() topic.Identity {
	return topic.Identity{Principal: s.identity.Principal.ID, Agent: cmp.Or(s.id, s.standby)}
}

// triedBy reports whether the task failed with the agent before.
func (j *job) triedBy(s *Session) bool {
	for _, a := range j.tried {
		if a.sess == s || a.sess == nil && (a.agent == s.id || a.agent == s.standby) {
			return true
		}
	}
	return false
}

// triedAt reports whether the task failed before with an agent of another hub, or that hub did not
// take it.
func (j *job) triedAt(e *roster.Entry) bool {
	return slices.Contains(j.shunned, e.Hub) || slices.ContainsFunc(j.tried, func(a attempt) bool { return a.agent == e.ID })
}

func (h *Hub) assign(j *job, s *Session) {
	slot := !takesNoSlot(j.Task, s)
	w := &j.first
	if w.job != nil {
		w = new(holding) // the agent before may have it still
	}
	w.job, w.slot = j, slot
	s.mu.Lock()
	s.work.put(j.ID(), w)
	s.mu.Unlock()
	if slot {
		h.roster.Start(s.id)
	}
	s.tellHops()
	j.waiting = nil
	a := task.Assignment{Worker: s.peer(), Agent: s.id, Dialect: s.identity.Dialect, MaxTaskTime: s.opts.MaxTaskTime, ApprovalTimeout: s.opts.ApprovalTimeout}
	h.handOver(j, s, &a)
	if j.Assign(a) {
		return
	}
	s.mu.Lock()
	delete(s.work, j.ID())
	s.mu.Unlock()
	if slot {
		h.roster.Finish(s.id)
	}
	s.tellHops()
}

// enqueue puts a task into the queue of an agent, urgent ones first.
func (h *Hub) enqueue(j *job, s *Session) {
	if j.HasEnded() {
		return // its end was handled already: nothing would remove it from the queue
	}
	j.waiting = s
	i := len(s.queue)
	for i > 0 && s.queue[i-1].Priority() < j.Priority() {
		i--
	}
	s.queue = slices.Insert(s.queue, i, j)
	h.queueChanged(s)
}

func (h *Hub) unqueue(s *Session, j *job) {
	if i := slices.Index(s.queue, j); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		h.queueChanged(s)
	}
}

// queueChanged updates what depends on the queue of an agent.
func (h *Hub) queueChanged(s *Session) {
	if slices.ContainsFunc(s.queue, (*job).isStealable) {
		h.stealable[s] = struct{}{}
	} else {
		delete(h.stealable, s)
	}
	h.roster.Change(s.id, func(e *roster.Entry) { e.Load.Queued = len(s.queue) })
}

// steal takes a task that waits for another agent into the queue of this one, if it may
// have it. It reports whether it took one.
func (h *Hub) steal(s *Session) bool {
	e, ok := h.roster.Get(s.id)
	if !ok || !e.Free() {
		return false
	}
	from, j := h.waitingFor(&e, func(other *Session, j *job) bool { return other != s && !j.triedBy(s) })
	if j == nil {
		return false
	}
	h.unqueue(from, j)
	s.queue, j.waiting = append(s.queue, j), s
	h.queueChanged(s)
	return true
}

// waitingFor returns the task that an agent may have and for which another one is waited, and that one: the
// most urgent, and of those the oldest; nil if there is none.
func (h *Hub) waitingFor(e *roster.Entry, may func(from *Session, j *job) bool) (from *Session, best *job) {
	for other := range h.stealable {
		for _, j := range other.queue {
			if !j.isStealable() || !may(other, j) || j.Chain().CheckAgent(e.ID) != nil || !h.sees(j.From(), e) || h.mayAsk(j.From(), ofEntry(e)) != nil {
				continue
			}
			if mine, answers := e.Answers(j.To()); !answers || mine < other.score(j) || takesOptions(j.Options(), e) != nil {
				continue
			}
			if best == nil || cmp.Or(cmp.Compare(j.Priority(), best.Priority()), cmp.Compare(best.ID(), j.ID())) > 0 {
				from, best = other, j
			}
			break // those after it are not more urgent
		}
	}
	return from, best
}

// isStealable reports whether another agent than the one it waits for may have the task.
func (j *job) isStealable() bool { return j.To().Reach() != core.ReachAgent && !j.IsNotice() }

// score returns how well the agent answers for the address of a task.
func (s *Session) score(j *job) int {
	n, _ := s.card.Load().Answers(j.To())
	return n
}

// dispatch assigns tasks from the queue of an agent while it has free slots.
func (h *Hub) dispatch(s *Session) {
	for len(s.queue) > 0 || h.steal(s) {
		e, ok := h.roster.Get(s.id)
		if !ok || !e.Free() {
			return
		}
		j := s.queue[0]
		h.assign(j, s) // before it leaves the queue: the agent is at no time without work
		h.unqueue(s, j)
	}
}
