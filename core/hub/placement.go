package hub

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// placement returns the agent of another hub that is to get a task, and the index of that hub; false
// if an agent of this hub is, or none. Of equal agents those of this hub come first.
func (h *Hub) placement(j *job) (c choice, index int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.others.peers == nil || j.To().Reach() == core.ReachHub {
		return c, 0, false
	}
	c = h.choose(j, true)
	if c.hub == "" {
		return c, 0, false
	}
	index, ok = h.others.indices[c.hub]
	return c, index, ok
}

// considerRemote is the rest of [choice.consider] for an agent of another hub, whose queue is
// there.
func (c *choice) considerRemote(e *roster.Entry) roster.Verdict {
	if c.job.triedAt(e) {
		return roster.Continue
	}
	if _, silent := c.engine.others.silent[e.Hub]; silent {
		return c.considerSilent(e)
	}
	free := e.Free() || c.job.IsNotice()
	waiting := e.Load.Queued + max(0, e.Load.Active-e.Capacity()) // also what was sent and is not counted there yet
	switch {
	case c.engine.others.draining[e.Hub], !free && e.Reported == core.LoadDraining:
		c.found = true
	case !free && waiting >= c.job.opener.hub.limits.QueueLength:
		c.found, c.open = true, true
	case !c.anywhere:
	case free:
		c.hub, c.agent, c.later = e.Hub, e.ID, nil
		return roster.Stop
	default:
		if c.later == nil && c.hub == "" {
			c.hub, c.agent = e.Hub, e.ID
		}
		return roster.SkipWorse
	}
	return roster.Continue
}

// send notes that a task goes to the agent of another hub that was chosen: the next one may go to
// another agent, although that hub has not said yet that this one has more to do. Callers hold mu.
func (h *Hub) send(j *job, c *choice) {
	if !j.IsNotice() {
		h.others.sent[j.ID()] = c.agent
		h.roster.Send(c.agent)
	}
}

// returned notes that a task has ended, or does not go to the agent of another hub to which it was to
// go: that agent has less to do. Callers hold mu.
func (h *Hub) returned(t *task.Task) {
	to, sent := h.others.sent[t.ID()]
	if delete(h.others.sent, t.ID()); !sent {
		return
	}
	if by := t.Agent(); t.IsMirror() && by != "" && by != to {
		return // that hub has given it to another one, and has said what the load of this one is
	}
	h.roster.Return(to)
}

// openAt opens a task that another hub is to own.
func (h *Hub) openAt(s *Session, j *job, c *choice, index int, o *core.Open) error {
	work, err := h.quotas.Begin(j.From(), j.Size())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.admits(s); err != nil {
		work.End()
		return err
	}
	opened, err := h.tasks.OpenMirror(j.Task, index, work)
	if err != nil {
		work.End()
		return err
	}
	keep := o.Keep || s.identity.Keep
	if err := h.others.peers.Open(c.hub, Opening{Opened: opened, From: j.From(), Keep: keep, Private: o.Private}); err != nil {
		h.tasks.Forget(j.Task)
		return err
	}
	h.send(j, c)
	h.mirrors[j.ID()] = s
	h.enter(s, j, o)
	return nil
}
