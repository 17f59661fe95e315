package hub

import (
	"context"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// A task goes to the best agent of any hub when it is opened, and once more if its agent is lost before it has said
// anything.

// mayPlace reports whether a task that no agent works on may be run elsewhere. Callers hold mu.
func (h *Hub) mayPlace(j *job) bool {
	return h.remote != nil && !j.IsNotice() && !j.HasOutput() && j.Transfers() < MostTransfers
}

// reroute gives a job that has lost its agent, for the reason, to the best other one of any hub. It
// returns a Fault if there is none.
func (h *Hub) reroute(j *job, why *core.Fault) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.place(j, why)
}

// place is reroute. Callers hold mu.
func (h *Hub) place(j *job, why *core.Fault) error {
	for {
		if to := j.Leaves(); to != "" {
			if h.placeAt(j, to, why) == nil {
				return nil
			}
			h.stays(j, to)
		}
		c := h.choose(j, h.mayPlace(j))
		if c.hub == "" {
			return h.give(j, &c)
		}
		if !j.Leave(c.hub, awaited(j), why) {
			return nil // it has ended
		}
		h.send(j, &c)
	}
}

// placeAt has a job run at another hub, for which it leaves. Callers hold mu.
func (h *Hub) placeAt(j *job, to string, why *core.Fault) error {
	p := Placement{To: to, From: j.From(), Opener: j.opener.identity.Hub}
	j.opener.mu.Lock()
	keep, here := j.opener.opened[j.Task]
	p.Keep = keep || !here
	j.opener.mu.Unlock()
	for _, a := range j.tried {
		if a.agent != "" {
			p.Tried = append(p.Tried, a.agent)
		}
	}
	if err := h.remote.Place(j.Task, p); err != nil {
		return err
	}
	j.why = why
	h.placing[j.ID()] = struct{}{}
	return nil
}

// notPlacing notes that a job is not on its way to another hub any more. Callers hold mu.
func (h *Hub) notPlacing(id core.TaskID) {
	if _, is := h.placing[id]; !is {
		return
	}
	if delete(h.placing, id); len(h.placing) == 0 {
		close(h.allPlaced)
		h.allPlaced = make(chan struct{})
	}
}

// awaited returns the agent for which a job has waited; "" if it was any.
func awaited(j *job) core.AgentID {
	if j.To().Reach() == core.ReachAgent {
		return j.To().Agent()
	}
	return j.Agent()
}

// stays keeps a job that a hub did not take, and does not try that hub again. Callers hold mu.
func (h *Hub) stays(j *job, to string) {
	j.shunned = append(j.shunned, to)
	h.returned(j.Task)
	j.Stay()
}

// passOn gives a job to another agent, or ends it for the reason.
func (h *Hub) passOn(j *job, why *core.Fault) {
	if h.reroute(j, why) != nil {
		j.End(core.Failed{Fault: why})
	}
}

// HandOn has what waits in queues and can run elsewhere run there, for a hub that is to stop.
// What no other hub takes stays. It returns once all is placed or stays, or ctx ends.
func (h *Hub) HandOn(ctx context.Context) {
	why := core.NewFault(core.CodeUnreachable, "hub %s hands its tasks on", h.node.Name())
	for h.remote != nil {
		var left []*job
		h.mu.Lock()
		for s := range h.sessions {
			for _, j := range slices.Clone(s.queue) {
				if h.mayPlace(j) && h.chooseAway(j).hub != "" {
					h.unqueue(s, j)
					j.waiting = nil
					left = append(left, j)
				}
			}
		}
		slices.SortFunc(left, byID)
		for _, j := range left {
			if c := h.chooseAway(j); c.hub != "" && j.Leave(c.hub, awaited(j), why) {
				h.send(j, &c)
			}
		}
		h.mu.Unlock()
		for _, j := range left {
			h.passOn(j, why)
		}
		h.mu.Lock()
		done, idle := h.allPlaced, len(h.placing) == 0
		h.mu.Unlock()
		if idle && len(left) == 0 {
			return
		} else if idle {
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// chooseAway finds the best agent of another hub for a job. Callers hold mu.
func (h *Hub) chooseAway(j *job) choice {
	c := choice{engine: h, job: j, anywhere: true, away: true}
	c.look()
	return c
}

func byID(a, b *job) int {
	if a.ID() < b.ID() {
		return -1
	}
	return 1
}

// placement returns the agent of another hub that is to get a task, and the index of that hub; false
// if an agent of this hub is, or none. Of equal agents those of this hub come first.
func (h *Hub) placement(j *job) (c choice, index int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.remote == nil || j.To().Reach() == core.ReachHub {
		return c, 0, false
	}
	if c = h.choose(j, true); c.hub == "" {
		return c, 0, false
	}
	s := h.node.State(c.hub)
	return c, s.Index, s.Index >= 0
}

// considerRemote is the rest of [choice.consider] for an agent of another hub, whose queue is
// there. One of a hub that is not heard gets only what nobody else can have, and after a while nothing.
func (c *choice) considerRemote(e *roster.Entry) roster.Verdict {
	if c.job.triedAt(e) {
		return roster.Continue
	}
	hub := c.engine.node.State(e.Hub)
	free := e.Free() || c.job.IsNotice()
	waiting := e.Load.Queued + max(0, e.Load.Active-e.Capacity()) // also what was sent and is not counted there yet
	switch {
	case hub.Silent:
		c.refused = core.NewFault(core.CodeUnreachable, "hub %s is not heard by this hub: ask again in a moment, or ask at another hub", e.Hub)
	case hub.Unheard:
		if c.anywhere && c.spareHub == "" {
			c.spareHub, c.spare = e.Hub, e.ID
		}
	case hub.Draining, !free && e.Reported == core.LoadDraining:
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
		h.sent[j.ID()] = c.agent
		h.roster.Send(c.agent)
	}
}

// returned notes that a task has ended, or does not go to the agent of another hub to which it was to
// go: that agent has less to do. Callers hold mu.
func (h *Hub) returned(t *task.Task) {
	to, sent := h.sent[t.ID()]
	if delete(h.sent, t.ID()); !sent {
		return
	}
	if by := t.Agent(); t.IsRemote() && by != "" && by != to {
		return // that hub has given it to another one, and has said what the load of this one is
	}
	h.roster.Return(to)
}

// openAt opens a task that another hub is to run.
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
	opened, err := h.tasks.OpenRemote(j.Task, index, work)
	if err != nil {
		work.End()
		return err
	}
	keep := o.Keep || s.identity.Keep
	if err := h.remote.Open(c.hub, Opening{Opened: opened, From: j.From(), Keep: keep, Private: o.Private}); err != nil {
		h.tasks.Forget(j.Task)
		return err
	}
	h.send(j, c)
	h.asked[j.ID()] = s
	h.enter(s, j, o)
	return nil
}

// seekTime is how long the tasks of an agent that comes to another hub wait until it is seen there.
const seekTime = 10 * time.Second

// leaveBehind closes the connection of an agent that comes to another hub. What waits for it, or
// was given to it and may be given again, waits until that hub has it, and goes along.
func (h *Hub) leaveBehind(s *Session, id core.AgentID) {
	why := core.NewFault(core.CodeConflict, "agent %s has come to another hub of the cluster", id)
	gone := core.NewFault(core.CodeUnreachable, "agent %s left: %s", id, why.Message)
	var all []orphan
	h.mu.Lock()
	for _, j := range slices.Clone(s.queue) {
		if !s.closed && h.mayPlace(j) {
			h.unqueue(s, j)
			j.waiting = nil
			all = append(all, orphan{j, gone})
		}
	}
	h.mu.Unlock()
	h.keep(id, append(all, s.close(why)...))
}

// keep keeps jobs until their agent is seen somewhere, for as long as that may take.
func (h *Hub) keep(agent core.AgentID, all []orphan) {
	if len(all) == 0 {
		return
	}
	h.mu.Lock()
	h.orphans[agent] = append(h.orphans[agent], all...)
	h.mu.Unlock()
	time.AfterFunc(seekTime, func() { h.seek(agent, all) })
}

// seek gives the jobs of an agent that was seen somewhere, or should have been by now, to the agents that
// may have them. With all nil these are all that wait for it.
func (h *Hub) seek(agent core.AgentID, all []orphan) {
	h.mu.Lock()
	waiting := h.orphans[agent]
	if len(waiting) == 0 {
		h.mu.Unlock()
		return
	}
	if all == nil {
		all = waiting
	}
	var due []orphan
	rest := slices.DeleteFunc(slices.Clone(waiting), func(s orphan) bool {
		is := slices.ContainsFunc(all, func(o orphan) bool { return o.job == s.job })
		if is {
			due = append(due, s)
		}
		return is
	})
	if h.orphans[agent] = rest; len(rest) == 0 {
		delete(h.orphans, agent)
	}
	h.mu.Unlock()
	for _, s := range due {
		if !s.job.HasEnded() {
			h.passOn(s.job, s.why)
		}
	}
}
