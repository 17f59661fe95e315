package hub

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// placement returns the other hub whose agent is to get a task, and its index; false if an agent
// of this hub is, or none. Of equal agents those of this hub come first.
func (h *Hub) placement(j *job) (hub string, index int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.others.peers == nil || j.To().Reach() == core.ReachHub {
		return "", 0, false
	}
	c := h.choose(j, true)
	if hub = c.hub; hub == "" {
		return "", 0, false
	}
	index, ok = h.others.indices[hub]
	return hub, index, ok
}

// considerRemote is the rest of [choice.consider] for an agent of another hub, whose queue is
// there.
func (c *choice) considerRemote(e *roster.Entry) roster.Verdict {
	if !c.anywhere || c.job.triedAt(e) {
		return roster.Continue
	}
	c.found = true
	if c.engine.others.draining[e.Hub] {
		return roster.Continue
	}
	if e.Free() || c.job.IsNotice() {
		c.hub, c.later = e.Hub, nil
		return roster.Stop
	}
	if e.Reported == core.LoadDraining {
		return roster.Continue
	}
	c.open = true
	if c.later == nil && c.hub == "" && e.Load.Queued < c.job.opener.hub.limits.QueueLength {
		c.hub = e.Hub
	}
	return roster.SkipWorse
}

// openAt opens a task that another hub is to own.
func (h *Hub) openAt(s *Session, j *job, hub string, index int, o *core.Open) error {
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
	if err := h.others.peers.Open(hub, Opening{Opened: opened, From: j.From(), Keep: keep, Private: o.Private}); err != nil {
		h.tasks.Forget(j.Task)
		return err
	}
	h.mirrors[j.ID()] = s
	h.enter(s, j, o)
	return nil
}
