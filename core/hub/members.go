package hub

import (
	"context"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// claimTime is how long the claim of an id in the cluster may take.
const claimTime = 10 * time.Second

// claim makes the id of an agent that of the session in the whole cluster. It waits for the
// cluster, and returns a conflict Fault if somebody else keeps the id.
func (s *Session) claim(id core.AgentID) error {
	c := s.hub.cluster
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.hub.ctx, claimTime)
	defer cancel()
	return c.Claim(ctx, id, s.number, s.identity.Principal)
}

// unclaim gives the id of an agent back.
func (s *Session) unclaim(id core.AgentID) {
	if c := s.hub.cluster; c != nil {
		c.Unclaim(id, s.number, s.identity.Principal)
	}
}

// tellCluster tells the other hubs of an agent that has joined or changed. They do not know one of which
// only the id is known: nobody has claimed that for it. Callers hold mu.
func (h *Hub) tellCluster(s *Session) {
	if h.cluster == nil || s.opts.OnlyByID {
		return
	}
	if e, ok := h.roster.Get(s.id); ok {
		h.cluster.Put(cluster.Entry{
			Card: e.Card, Principal: s.identity.Principal, Connection: s.number, Since: e.Since,
			OnlyByID: e.OnlyByID, Child: e.Child, Load: loadOf(&e),
		})
	}
}

func loadOf(e *roster.Entry) cluster.Load {
	return cluster.Load{Reported: e.Reported, Active: e.Load.Active, Queued: e.Load.Queued, MinHops: e.MinHops, HopsUntil: e.HopsUntil}
}

// Forget says that another hub of the cluster is gone for good. It returns a not_authorized Fault
// unless the principal is an operator, an unsupported one for a hub alone, a conflict one for a hub
// that is heard, and a retryable one if that could not be stored.
func (h *Hub) Forget(ctx context.Context, p core.Principal, c core.Forget) error {
	_, err := h.do(ctx, nil, core.Call{Principal: p, Command: c}, func() error {
		if h.forgetHub == nil {
			return core.NewFault(core.CodeUnsupported, "this hub is alone: it has no cluster")
		}
		return h.forgetHub(ctx, c.Hub)
	})
	return err
}

// Release closes the connection of an agent that has come to another hub, if it has to give its
// id up there, and answers. It waits for the older connection as [Session.Take] does.
func (h *Hub) Release(ctx context.Context, r cluster.Release) {
	h.mu.Lock()
	by := sessionOf(h.roster.Member(r.Agent))
	if by == nil || by.number > r.Connection {
		h.mu.Unlock()
		r.Answer(true)
		return
	}
	gone := by.left
	h.mu.Unlock()
	if !r.Taken {
		if keeps, err := h.yields(ctx, by, r.For); err != nil || keeps {
			r.Answer(false)
			return
		}
	}
	h.leaveBehind(by, r.Agent)
	select {
	case <-gone:
		r.Answer(true)
	case <-ctx.Done():
	}
}

// leaveBehind closes the connection of an agent that comes to another hub. What waits for it, or
// was given to it and may be given again, waits until that hub has it, and goes along.
func (h *Hub) leaveBehind(s *Session, id core.AgentID) {
	why := core.NewFault(core.CodeConflict, "agent %s has come to another hub of the cluster", id)
	gone := core.NewFault(core.CodeUnreachable, "agent %s left: %s", id, why.Message)
	var all []orphan
	if h.shared != nil {
		h.mu.Lock()
		for _, j := range slices.Clone(s.queue) {
			if !s.closed && h.mayMove(j) {
				h.unqueue(s, j)
				j.waiting = nil
				all = append(all, orphan{j, gone})
			}
		}
		h.mu.Unlock()
	}
	for _, o := range s.close(why) {
		if h.shared != nil {
			all = append(all, o)
		} else {
			o.job.End(core.Failed{Fault: o.why})
		}
	}
	h.keep(id, all)
}
