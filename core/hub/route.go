package hub

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// route gives a task to the best agent that may have it, or queues it there. It
// returns a Fault when nobody can.
func (h *Hub) route(t *Task) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := choice{hub: h, task: t, chain: t.chain}
	if t.request.Intent == core.IntentNotify {
		// A notice may go back to who told: its hops are bound enough.
		c.chain.Agents = slices.DeleteFunc(slices.Clone(c.chain.Agents), func(id core.AgentID) bool { return id != t.opener.id })
	}
	if to := t.request.To; to.Reach() == core.ReachAgent {
		if e, ok := h.find(to.Agent()); ok {
			c.consider(&e)
		}
	} else {
		h.roster.Best(to, c.consider)
	}
	switch {
	case c.now != nil:
		if c.now.id == "" {
			if err := h.sit(c.now, c.now.offer.Card, c.now.opts); err != nil {
				return err
			}
		}
		h.assign(t, c.now)
		return nil
	case c.later != nil:
		h.enqueue(t, c.later)
		return nil
	}
	return c.refusal()
}

// choice looks for the agent that gets a task, among those that answer for its
// address. Hub.mu guards it.
type choice struct {
	hub   *Hub
	task  *Task
	chain policy.Chain

	now     *Session // the best one that has room
	later   *Session // the best one in whose queue there is room
	found   bool     // somebody may have the task
	open    bool     // of those somebody is not draining
	refused error    // why the last one that may not have it may not
}

// consider takes one agent in view. It is called for the better ones first.
func (c *choice) consider(e *roster.Entry) roster.Verdict {
	h, t := c.hub, c.task
	s := h.answerer(e.ID)
	chain := c.chain
	if e.ID == t.opener.offered() {
		chain.Agents = append(slices.Clip(chain.Agents), e.ID) // nobody asks itself
	}
	err := h.rules.CheckTarget(t.from, chain, e.ID)
	if err == nil {
		err = h.budgets.Check(usage.ByAgent, string(e.ID), time.Now)
	}
	if err == nil && t.request.Intent == core.IntentNotify && !e.Features.Has(core.FeatureNotices) {
		err = core.NewFault(core.CodeUnsupported, "agent %s takes no notices: ask it instead", e.ID)
	}
	if err != nil {
		c.refused = err
		return roster.Continue
	}
	if t.triedBy(s) {
		return roster.Continue
	}
	c.found = true
	if !s.closed && (e.Free() || h.beside(t, s)) {
		c.now = s
		return roster.Stop
	}
	if e.Said == core.LoadDraining {
		return roster.Continue
	}
	c.open = true
	if c.later == nil && len(s.queue) < h.limits.QueueLength {
		c.later = s
	}
	if c.later != nil {
		return roster.SkipWorse // those behind it have no room now, and wait longer
	}
	return roster.Continue
}

// refusal returns the Fault that says why nobody gets the task.
func (c *choice) refusal() error {
	to := c.task.request.To
	switch {
	case c.open:
		return core.NewFault(core.CodeOverloaded, "%s has no room: its queue of %d is full; ask again later", to, c.hub.limits.QueueLength)
	case c.found:
		return core.NewFault(core.CodeUnreachable, "%s is draining and takes nothing new: ask again later or ask another", to)
	case c.refused != nil:
		return c.refused
	}
	switch to.Reach() {
	case core.ReachAgent:
		near := c.hub.roster.Nearest(to.Agent())
		if len(near) == 0 {
			return core.NewFault(core.CodeUnknownAgent, "no agent %q is here", to.Agent())
		}
		return core.NewFault(core.CodeUnknownAgent, "no agent %q is here; the nearest: %s", to.Agent(), join(near))
	case core.ReachDomain:
		return core.NewFault(core.CodeUnknownDomain, "no agent serves the domain %q", to.Domain())
	case core.ReachCapability:
		return core.NewFault(core.CodeUnknownAgent, "no agent here has the capability %s", strings.Join(to.Capabilities(), " and "))
	}
	return core.NewFault(core.CodeUnknownAgent, "no agent is here to ask")
}

func join(ids []core.AgentID) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(id))
	}
	return b.String()
}

// beside reports whether the agent takes the task without a slot: a notice, where
// its dialect has them.
func (h *Hub) beside(t *Task, s *Session) bool {
	return t.request.Intent == core.IntentNotify && !s.opts.NoticeTasks
}

// assign gives a task to an agent. Callers hold mu.
func (h *Hub) assign(t *Task, s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Ended {
		return
	}
	slot := !h.beside(t, s)
	if slot {
		h.roster.Start(s.id)
	}
	s.mu.Lock()
	s.work.put(t.id, &hold{task: t, slot: slot})
	s.mu.Unlock()
	t.state, t.worker, t.agent, t.waiting = Running, s, s.id, nil
	t.attempt++
	if t.request.Intent != core.IntentNotify {
		t.dueWith(s.opts.MostTime)
	}
	t.request.History = t.request.History[:t.told:t.told]
	if !s.card.Features.Has(core.FeatureSessions) {
		t.request.History = h.withHistory(t)
	}
	t.attach(s, Agent, nil, t.last())
	t.append(core.Assigned{Agent: s.id, Attempt: t.attempt}, nil)
}

// enqueue lets a task wait for an agent, urgent ones first. Callers hold mu.
func (h *Hub) enqueue(t *Task, s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Ended {
		return
	}
	t.waiting = s
	i := len(s.queue)
	for i > 0 && s.queue[i-1].request.Priority < t.request.Priority {
		i--
	}
	s.queue = slices.Insert(s.queue, i, t)
	h.queued(s)
}

// steal moves a task that waits for somebody else, and that the agent may have as
// well, into its queue: the most urgent one, and of those the oldest. Callers hold mu.
func (h *Hub) steal(s *Session) bool {
	if len(h.movable) == 0 {
		return false
	}
	e, ok := h.roster.Get(s.id)
	if !ok || !e.Free() {
		return false
	}
	var from *Session
	var best *Task
	for other := range h.movable {
		for _, t := range other.queue {
			if other == s || !t.movable() || t.triedBy(s) || h.rules.CheckTarget(t.from, t.chain, s.id) != nil {
				continue
			}
			if mine, answers := e.Answers(t.request.To); !answers || mine < other.score(t) {
				continue
			}
			if best == nil || cmp.Or(cmp.Compare(t.request.Priority, best.request.Priority), cmp.Compare(best.id, t.id)) > 0 {
				from, best = other, t
			}
			break // those behind it are no more urgent
		}
	}
	if best == nil {
		return false
	}
	from.queue = slices.DeleteFunc(from.queue, func(t *Task) bool { return t == best })
	h.queued(from)
	s.queue = append(s.queue, best)
	h.queued(s)
	return true
}

// movable reports whether another agent may have a task that waits for one.
func (t *Task) movable() bool {
	return t.request.To.Reach() != core.ReachAgent && t.request.Intent != core.IntentNotify
}

// score tells how well the agent answers for the address of a task.
func (s *Session) score(t *Task) int {
	n, _ := s.card.Answers(t.request.To)
	return n
}

// queued notes that the queue of an agent is another. Callers hold mu.
func (h *Hub) queued(s *Session) {
	if slices.ContainsFunc(s.queue, (*Task).movable) {
		h.movable[s] = struct{}{}
	} else {
		delete(h.movable, s)
	}
	h.roster.Change(s.id, func(e *roster.Entry) { e.Load.Queued = len(s.queue) })
}

// dispatch gives an agent what waits for it, as far as it has room. Callers hold
// mu.
func (h *Hub) dispatch(s *Session) {
	for len(s.queue) > 0 || h.steal(s) {
		e, ok := h.roster.Get(s.id)
		if !ok || !e.Free() {
			return
		}
		t := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		h.queued(s)
		h.assign(t, s)
	}
}

// release takes a task off an agent's hands and gives it the next. The agent
// ended it now, or its time to do so is over.
func (h *Hub) release(s *Session, t *Task, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	w := s.work[t.id]
	if w == nil {
		s.mu.Unlock()
		return
	}
	delete(s.work, t.id)
	s.last, s.until = cause{task: t.id, chain: t.chain, over: true}, now.Add(h.limits.CauseMemory)
	s.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.slot && !s.closed { // its id may be another's by now
		h.roster.Finish(s.id)
		h.dispatch(s)
	}
}
