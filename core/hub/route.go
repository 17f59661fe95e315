package hub

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// route gives a task to the best agent that may have it, or queues it there. It
// returns a Fault when nobody can.
func (h *Hub) route(t *Task) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var room [1]roster.Entry
	found, err := h.candidates(t, room[:0])
	if err != nil {
		return err
	}
	for i := range found {
		e := &found[i]
		s := h.answerer(e.ID)
		if s.closed || !e.Free() && !h.beside(t, s) {
			continue
		}
		if s.id == "" {
			if err := h.sit(s, s.offer.Card, s.seat); err != nil {
				return err
			}
		}
		h.assign(t, s)
		return nil
	}
	for _, e := range found {
		if s := h.agents[e.ID]; e.Said != core.LoadDraining && len(s.queue) < h.limits.QueueLength {
			h.enqueue(t, s)
			return nil
		}
	}
	if !slices.ContainsFunc(found, func(e roster.Entry) bool { return e.Said != core.LoadDraining }) {
		return core.NewFault(core.CodeUnreachable, "%s is draining and takes nothing new: ask again later or ask another", t.request.To)
	}
	return core.NewFault(core.CodeOverloaded, "%s has no room: its queue of %d is full; ask again later", t.request.To, h.limits.QueueLength)
}

// candidates returns who may have the task, best first, or the Fault that says
// why nobody may; room is for a single one. Callers hold mu.
func (h *Hub) candidates(t *Task, room []roster.Entry) ([]roster.Entry, error) {
	to, chain := t.request.To, t.chain
	if t.request.Intent == core.IntentNotify {
		// A notice may go back to who told: its hops are bound enough.
		chain.Agents = slices.DeleteFunc(slices.Clone(chain.Agents), func(id core.AgentID) bool { return id != t.opener.id })
	}
	var refused error
	found := h.match(to, room)
	out := found[:0]
	for i := range found {
		e := &found[i]
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
		switch {
		case err != nil:
			refused = err
		case slices.Contains(t.tried, e.ID):
		default:
			out = append(out, *e)
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case refused != nil:
		return nil, refused
	}
	switch to.Reach() {
	case core.ReachAgent:
		near := h.roster.Nearest(to.Agent())
		if len(near) == 0 {
			return nil, core.NewFault(core.CodeUnknownAgent, "no agent %q is here", to.Agent())
		}
		return nil, core.NewFault(core.CodeUnknownAgent, "no agent %q is here; the nearest: %s", to.Agent(), join(near))
	case core.ReachDomain:
		return nil, core.NewFault(core.CodeUnknownDomain, "no agent serves the domain %q", to.Domain())
	case core.ReachCapability:
		return nil, core.NewFault(core.CodeUnknownAgent, "no agent here has the capability %s", strings.Join(to.Capabilities(), " and "))
	}
	return nil, core.NewFault(core.CodeUnknownAgent, "no agent is here to ask")
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
	return t.request.Intent == core.IntentNotify && !s.seat.NoticeTasks
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
		t.dueWith(s.seat.MostTime)
	}
	t.request.History = t.request.History[:t.told:t.told]
	if !s.card.Features.Has(core.FeatureSessions) {
		if turns, ok := h.threads.Turns(t.request.Thread, h.limits.HistoryBytes); ok {
			t.request.History = append(t.request.History, h.readable(t.from, turns)...)
		}
	}
	t.attach(s, Agent, nil, t.last())
	t.append(core.Assigned{Agent: s.id, Attempt: t.attempt}, nil)
}

// readable leaves those turns of a thread that whoever authenticated may read: the name of a
// thread is no secret, and an agent that is told what others said may be asked for it.
func (h *Hub) readable(p core.Principal, turns []core.Turn) []core.Turn {
	if !p.Authenticated {
		return turns
	}
	return slices.DeleteFunc(turns, func(t core.Turn) bool { return !h.rules.MayRead(p, core.Principal{ID: t.From}) })
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
	if h.waiting == 0 {
		return false
	}
	e, ok := h.roster.Get(s.id)
	if !ok || !e.Free() {
		return false
	}
	var from *Session
	var best *Task
	for _, other := range h.agents {
		for _, t := range other.queue {
			if other == s || t.request.To.Reach() == core.ReachAgent || t.request.Intent == core.IntentNotify || slices.Contains(t.tried, s.id) ||
				h.rules.CheckTarget(t.from, t.chain, s.id) != nil {
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

// score tells how well the agent answers for the address of a task.
func (s *Session) score(t *Task) int {
	n, _ := s.card.Answers(t.request.To)
	return n
}

// queued notes that the queue of an agent is another. Callers hold mu.
func (h *Hub) queued(s *Session) {
	h.roster.Change(s.id, func(e *roster.Entry) {
		h.waiting += len(s.queue) - e.Load.Queued
		e.Load.Queued = len(s.queue)
	})
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

// requeue finds another place for a task that waited for an agent which left.
func (h *Hub) requeue(t *Task, gone *core.Fault) {
	if t.request.To.Reach() == core.ReachAgent {
		t.end(core.Failed{Fault: gone}, nil)
		return
	}
	if err := h.route(t); err != nil {
		t.end(core.Failed{Fault: core.AsFault(err)}, nil)
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
