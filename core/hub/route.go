package hub

import (
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// route gives a task to the best agent that may have it, or queues it there. It
// returns a Fault when nobody can.
func (h *Hub) route(j *job) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := choice{hub: h, job: j, chain: j.Chain()}
	if j.IsNotice() {
		// A notice may go back to who told: its hops are bound enough.
		c.chain.Agents = slices.DeleteFunc(slices.Clone(c.chain.Agents), func(id core.AgentID) bool { return id != j.opener.root().id })
	}
	var named roster.Entry
	if to := j.To(); to.Reach() == core.ReachAgent {
		var ok bool
		if named, ok = h.roster.Find(to.Agent()); ok {
			c.consider(&named)
		}
	} else {
		h.roster.Best(to, c.consider)
	}
	switch {
	case c.now != nil:
		if c.now.id == "" { // it stands by under its id
			if err := h.makeAgent(c.now, named.Card, c.now.opts); err != nil {
				return err
			}
		}
		h.assign(j, c.now)
		return nil
	case c.later != nil:
		h.enqueue(j, c.later)
		return nil
	}
	return c.refusal()
}

// choice looks for the agent that gets a task, among those that answer for its
// address. Hub.mu guards it.
type choice struct {
	hub   *Hub
	job   *job
	chain policy.Chain

	now     *Session // the best one that has room
	later   *Session // the best one in whose queue there is room
	found   bool     // somebody may have the task
	open    bool     // of those somebody is not draining
	refused error    // why the last one that may not have it may not
}

// consider takes one agent in view. It is called for the better ones first.
func (c *choice) consider(e *roster.Entry) roster.Verdict {
	h, j := c.hub, c.job
	s := sessionOf(e.Member)
	chain := c.chain
	if e.ID == j.opener.root().standby {
		chain.Agents = append(slices.Clip(chain.Agents), e.ID) // nobody asks itself
	}
	err := chain.CheckAgent(e.ID)
	if err == nil {
		err = h.authorizer.AllowAgent(j.From(), e.ID)
	}
	if err == nil {
		err = h.budgets.Check(usage.ByAgent, string(e.ID), time.Now)
	}
	if err == nil && j.IsNotice() && !e.Features.Has(core.FeatureNotices) {
		err = core.NewFault(core.CodeUnsupported, "agent %s takes no notices: ask it instead", e.ID)
	}
	if err != nil {
		c.refused = err
		return roster.Continue
	}
	if j.triedBy(s) {
		return roster.Continue
	}
	c.found = true
	if !s.closed && (e.Free() || takesNoSlot(j.Task, s)) {
		c.now = s
		return roster.Stop
	}
	if e.Reported == core.LoadDraining {
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
	to := c.job.To()
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

// takesNoSlot reports whether the agent takes the task without a slot: a notice, where
// its dialect has them.
func takesNoSlot(t *task.Task, s *Session) bool { return t.IsNotice() && !s.opts.NoticeTasks }
