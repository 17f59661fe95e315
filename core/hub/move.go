package hub

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// A task moves by one record. This is the side of the hub that has owned it: it hands a copy over,
// stores the record once the other hub has stored the copy, and has a mirror from then on.

// Handover is a task on its way to the hub that is to own it.
type Handover struct {
	// Events are all of the task. The last one is the record of the move.
	Events []core.Event
	// Stored is the number up to which they are stored where the task was.
	Stored uint64
	// From is the requester, with the rights that its credential gives.
	From core.Principal
	// Keep lets the task continue when the hub that opened it is gone. Opener is the name of that hub.
	Keep   bool
	Opener string
	// Tried are the agents that have failed.
	Tried []core.AgentID
}

// Move names a move of a task by the number of its record.
type Move struct {
	Task core.TaskID
	Seq  uint64
}

// record returns the record of the move.
func (o *Handover) record() core.Event { return o.Events[len(o.Events)-1] }

const (
	// handTime is how long another hub may take to accept a task.
	handTime = 5 * time.Second
	// mostMoves bounds how often a task moves: hubs may believe of each other that an agent is there.
	mostMoves = 8
)

// handing is a task that this hub hands to another one.
type handing struct {
	job   *job
	to    string
	seq   uint64      // of the record of the move
	why   *core.Fault // with which it ends if nobody takes it
	timer *time.Timer
}

// mayMove reports whether another hub may own a task that no agent works on. Callers hold mu.
func (h *Hub) mayMove(j *job) bool {
	return h.shared != nil && !j.IsNotice() && !j.HasOutput() && j.Moves() < mostMoves
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
			if h.hand(j, to, why) == nil {
				return nil
			}
			h.stays(j, to)
		}
		c := h.choose(j, h.mayMove(j))
		if c.hub == "" {
			return h.give(j, &c)
		}
		if !j.Leave(c.hub, awaited(j), why) {
			return nil // it has ended
		}
		h.send(j, &c)
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

// hand hands a job to another hub, for which it leaves. Callers hold mu.
func (h *Hub) hand(j *job, to string, why *core.Fault) error {
	o := Handover{From: j.From(), Opener: j.opener.identity.Hub}
	o.Events, o.Stored = j.Copy()
	if o.Events == nil {
		return nil // it has ended
	}
	if o.Opener == "" {
		o.Opener = h.others.name
	}
	j.opener.mu.Lock()
	keep, here := j.opener.opened[j.Task]
	o.Keep = keep || !here
	j.opener.mu.Unlock()
	for _, a := range j.tried {
		if a.agent != "" {
			o.Tried = append(o.Tried, a.agent)
		}
	}
	if err := h.others.peers.Hand(to, o); err != nil {
		return err
	}
	m := Move{j.ID(), o.record().Seq}
	g := &handing{job: j, to: to, seq: m.Seq, why: why}
	g.timer = time.AfterFunc(handTime, func() { h.Refused(to, m) })
	h.others.handing[m.Task] = g
	h.Count("move.handed")
	return nil
}

// handed returns what this hub hands to another one, and forgets it; nil if it does not. Callers hold
// mu.
func (h *Hub) handed(to string, m Move) *handing {
	if g := h.others.handing[m.Task]; g != nil && g.to == to && g.seq == m.Seq {
		h.handNoMore(g)
		return g
	}
	return nil
}

// handNoMore forgets that a task is handed over. Callers hold mu.
func (h *Hub) handNoMore(g *handing) {
	g.timer.Stop()
	delete(h.others.handing, g.job.ID())
	if len(h.others.handing) == 0 {
		close(h.others.handedAll)
		h.others.handedAll = make(chan struct{})
	}
}

// Taken says that a hub has stored a task that this one has handed to it: see [Peers.Hand].
func (h *Hub) Taken(by string, m Move) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, id := h.handed(by, m), m.Task
	if g == nil || !g.job.Gone() { // it was too late, or the task has ended
		_ = h.others.peers.Kept(by, m)
		return
	}
	j := g.job
	h.Count("move.gone")
	j.opener.mu.Lock()
	if j.opener.identity.Hub != "" {
		delete(j.opener.opened, j.Task) // the next owner has it for that hub
	} else {
		h.mirrors[id] = j.opener
	}
	j.opener.mu.Unlock()
	delete(h.jobs, id)
	h.noteIdle()
	h.follow(by, j.Task)
}

// Refused says that a hub does not take a task that this one has handed to it.
func (h *Hub) Refused(by string, m Move) {
	h.mu.Lock()
	g, nobody := h.handed(by, m), error(nil)
	if g != nil {
		h.Count("move.refused")
		h.stays(g.job, by)
		nobody = h.place(g.job, g.why)
	}
	h.mu.Unlock()
	if nobody != nil {
		g.job.End(core.Failed{Fault: g.why})
	}
}

// moveOn gives a job to another agent, or ends it for the reason.
func (h *Hub) moveOn(j *job, why *core.Fault) {
	if h.reroute(j, why) != nil {
		j.End(core.Failed{Fault: why})
	}
}

// refusedBy takes back what is on its way to a hub that is gone.
func (h *Hub) refusedBy(hub string) {
	h.mu.Lock()
	var all []Move
	for id, g := range h.others.handing {
		if g.to == hub {
			all = append(all, Move{id, g.seq})
		}
	}
	h.mu.Unlock()
	slices.SortFunc(all, func(a, b Move) int { return cmp.Compare(a.Task, b.Task) })
	for _, m := range all {
		h.Refused(hub, m)
	}
}

// HandOn hands what waits in queues and can run elsewhere to other hubs, for a hub that is to stop.
// What no other hub takes stays. It returns once all is handed over or stays, or ctx ends.
func (h *Hub) HandOn(ctx context.Context) {
	why := core.NewFault(core.CodeUnreachable, "hub %s hands its tasks on", h.others.name)
	for h.shared != nil {
		var left []*job
		h.mu.Lock()
		for s := range h.sessions {
			for _, j := range slices.Clone(s.queue) {
				if h.mayMove(j) && h.chooseAway(j).hub != "" {
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
			h.moveOn(j, why)
		}
		h.mu.Lock()
		done, idle := h.others.handedAll, len(h.others.handing) == 0
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

// keep keeps jobs until their agent is seen somewhere, for as long as that may take.
func (h *Hub) keep(agent core.AgentID, all []orphan) {
	if len(all) == 0 {
		return
	}
	h.mu.Lock()
	h.others.orphans[agent] = append(h.others.orphans[agent], all...)
	h.mu.Unlock()
	time.AfterFunc(claimTime, func() { h.seek(agent, all) })
}

// seek gives the jobs of an agent that was seen somewhere, or should have been by now, to whoever
// may have them. With all nil these are all that wait for it.
func (h *Hub) seek(agent core.AgentID, all []orphan) {
	h.mu.Lock()
	waiting := h.others.orphans[agent]
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
	if h.others.orphans[agent] = rest; len(rest) == 0 {
		delete(h.others.orphans, agent)
	}
	h.mu.Unlock()
	for _, s := range due {
		if !s.job.HasEnded() {
			h.moveOn(s.job, s.why)
		}
	}
}
