package hub

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// route assigns a task to the best agent that may have it, or queues it there. It returns a
// Fault when there is none.
func (h *Hub) route(j *job) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.choose(j, false)
	return h.give(j, &c)
}

// give gives a job to the agent of this hub that was chosen. Callers hold mu.
func (h *Hub) give(j *job, c *choice) error {
	switch {
	case c.now != nil:
		if c.now.id == "" { // it becomes an agent with its first task
			if err := h.makeAgent(c.now, c.named.Card, c.now.opts); err != nil {
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

// choose finds the agent for a task, of this hub or of any. Callers hold mu.
func (h *Hub) choose(j *job, anywhere bool) choice {
	c := choice{engine: h, job: j, anywhere: anywhere}
	c.look()
	return c
}

// look looks at the agents that the address names.
func (c *choice) look() {
	h, j := c.engine, c.job
	c.chain = j.Chain()
	if j.IsNotice() {
		// A notice may go back along its chain: the limit on hops ends a loop.
		c.chain.Agents = slices.DeleteFunc(slices.Clone(c.chain.Agents), func(id core.AgentID) bool { return id != j.opener.root().id })
	}
	if to := j.To(); to.ByID() {
		c.lookByID(to)
	} else {
		h.roster.Best(to, c.consider)
	}
	if c.now == nil && c.later == nil && c.hub == "" {
		c.hub, c.agent = c.spareHub, c.spare
	}
}

// lookByID looks at the agents that the address names, until one has a free slot.
func (c *choice) lookByID(to core.Address) {
	for id := range to.Agents() {
		var ok bool
		if c.named, ok = c.engine.roster.Find(id); ok && c.consider(&c.named) == roster.Stop {
			return
		}
	}
}

// choice finds the agent for a task. Hub.mu guards it.
type choice struct {
	engine   *Hub
	job      *job
	chain    policy.Chain
	anywhere bool // agents of other hubs count, too
	away     bool // those of this hub do not

	named roster.Entry // of the agents that the address names, the one looked at last
	now   *Session     // the best agent with a free slot
	later *Session     // the best agent with room in its queue
	hub   string       // the hub of the best agent, in place of both, if it is another one
	agent core.AgentID // that agent
	// spare is the best agent of a hub that is not heard: it is chosen for want of others.
	spare    core.AgentID
	spareHub string
	found    bool  // some agent may have the task
	open     bool  // and some such agent is not draining
	refused  error // why an agent may not have it; of the last such agent
}

// consider looks at one agent. The better ones come first.
func (c *choice) consider(e *roster.Entry) roster.Verdict {
	h, j := c.engine, c.job
	about := ofEntry(e)
	if !h.authorizer.May(j.From(), core.RightSee, about) {
		return roster.Continue // to the requester it is not here
	}
	if err := c.mayHave(e, about); err != nil {
		if j.To().Reach() != core.ReachPreference || !errors.Is(err, notAuthorized) {
			c.refused = err
		}
		return roster.Continue
	}
	if e.Hub != "" {
		return c.considerRemote(e)
	}
	return c.considerLocal(e)
}

// mayHave returns why an agent may not have the task, nil if it may.
func (c *choice) mayHave(e *roster.Entry, about policy.Object) error {
	h, j := c.engine, c.job
	chain := c.chain
	if e.ID == j.opener.root().standby {
		chain.Agents = append(slices.Clip(chain.Agents), e.ID) // an agent does not ask itself
	}
	if err := chain.CheckAgent(e.ID); err != nil {
		return err
	}
	if err := h.mayAsk(j.From(), about); err != nil {
		return err
	}
	if err := h.budgets.Check(usage.ByAgent, string(e.ID), time.Now); err != nil {
		return err
	}
	if j.IsNotice() && !e.Features.Has(core.FeatureNotices) {
		return core.NewFault(core.CodeUnsupported, "agent %s takes no notices: ask it instead", e.ID)
	}
	return takesOptions(j.Options(), e)
}

// takesOptions returns an unsupported Fault for options of a request to an agent that has none.
func takesOptions(o core.Options, e *roster.Entry) error {
	if len(o) == 0 || e.Features.Has(core.FeatureOptions) {
		return nil
	}
	return core.NewFault(core.CodeUnsupported, "agent %s has no options to be set: leave out %s; agents of the editor's protocol have some ('dragoman agents ID' lists them)", e.ID, strings.Join(o.Names(), ", "))
}

// considerLocal looks at an agent of this hub that may have the task.
func (c *choice) considerLocal(e *roster.Entry) roster.Verdict {
	h, j := c.engine, c.job
	s := sessionOf(e.Member)
	if c.away || j.triedBy(s) || c.passesOver(s) {
		return roster.Continue
	}
	if e.Child != nil && e.Child.State == core.ChildFailed {
		c.refused = childFailed(e.ID, *e.Child)
		return roster.Continue
	}
	c.found = true
	if !s.closed && (e.Free() || takesNoSlot(j.Task, s)) {
		c.now, c.hub = s, ""
		return roster.Stop
	}
	if e.Reported == core.LoadDraining {
		return roster.Continue
	}
	c.open = true
	if c.later == nil && c.hub == "" && len(s.queue) < h.limits.QueueLength {
		c.later = s
	}
	if c.later != nil || c.hub != "" {
		return roster.SkipWorse // worse agents have no free slot either
	}
	return roster.Continue
}

// passesOver reports whether an agent is one of several that are preferred in an order, and has said that it wants
// nothing until later.
func (c *choice) passesOver(s *Session) bool {
	if c.job.To().Reach() != core.ReachPreference || s.busy == nil || !time.Now().Before(s.busy.until) {
		return false
	}
	c.refused = s.busy.why
	return true
}

// mayAsk returns a not_authorized Fault unless the principal may ask the agent.
func (h *Hub) mayAsk(p core.Principal, about policy.Object) error {
	if h.authorizer.May(p, core.RightAsk, about) {
		return nil
	}
	return policy.Refusal(p, core.RightAsk, about.Target)
}

// refusal returns the Fault that says why no agent gets the task.
func (c *choice) refusal() error {
	to := c.job.To()
	switch {
	case c.open:
		return core.NewFault(core.CodeOverloaded, "%s has no room: its queue of %d is full; ask again later", to, c.engine.limits.QueueLength)
	case c.found:
		return core.NewFault(core.CodeUnreachable, "%s is draining and takes nothing new: ask again later or ask another", to)
	case c.refused != nil:
		return c.refused
	}
	switch to.Reach() {
	case core.ReachAgent:
		near := c.engine.Nearest(c.job.From(), to.Agent())
		if len(near) == 0 {
			return core.NewFault(core.CodeUnknownAgent, "no agent %q is here", to.Agent())
		}
		return core.NewFault(core.CodeUnknownAgent, "no agent %q is here; the nearest: %s", to.Agent(), join(near))
	case core.ReachPreference:
		return core.NewFault(core.CodeUnknownAgent, "none of the agents %s is here for you to ask", strings.ReplaceAll(to.String(), ",", ", "))
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

// takesNoSlot reports whether the task needs no slot of the agent: a notice, where its
// dialect has notices.
func takesNoSlot(t *task.Task, s *Session) bool { return t.IsNotice() && !s.opts.NoticeTasks }
