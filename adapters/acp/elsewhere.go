package acp

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// A peer may come to several hubs of a cluster. What waits for it is fetched by the hub that it
// comes to; one that has only HTTP is served by one hub, whichever it sends its requests to.

// pendingForm is a pending result as hubs tell it each other.
type pendingForm struct {
	Task    core.TaskID `json:"task"`
	ID      string      `json:"id"`
	Reports bool        `json:"reports,omitempty"`
	Until   time.Time   `json:"until"`
}

// A hub that a peer comes to asks the others what waits there for the peer, and then says that it
// has it: so a hub that dies between the two loses nothing.
const (
	pendingMatter rpc.Method[core.AgentID, []pendingForm] = Dialect + ".pending"
	fetchedMatter rpc.Method[fetched, bool]               = Dialect + ".fetched"
	callerMatter  rpc.Method[core.AgentID, bool]          = Dialect + ".caller"
	waitsMatter   rpc.Method[core.AgentID, bool]          = Dialect + ".waits"
)

// fetched says which results a hub does not have to keep any more.
type fetched struct {
	Agent core.AgentID  `json:"agent"`
	Tasks []core.TaskID `json:"tasks"`
}

// answer has a hub tell others what waits here for their peers.
func (p *Peers) answer(h *hub.Hub) {
	pendingMatter.Answer(h, func(_ context.Context, by core.Principal, id core.AgentID) (all []pendingForm, _ error) {
		for _, o := range p.waiting(peerID{by.ID, id}) {
			all = append(all, pendingForm{o.task, o.id, o.reports, o.until})
		}
		return all, nil
	})
	fetchedMatter.Answer(h, func(_ context.Context, by core.Principal, f fetched) (bool, error) {
		p.drop(peerID{by.ID, f.Agent}, func(id core.TaskID) bool { return slices.Contains(f.Tasks, id) })
		return true, nil
	})
	// The peer may have come here before another hub noticed that its connection there has ended.
	waitsMatter.Answer(h, func(ctx context.Context, by core.Principal, id core.AgentID) (bool, error) {
		here := p.listening(peerID{by.ID, id})
		if here != nil {
			here.fetchPending(ctx)
		}
		return here != nil, nil
	})
}

// waiting returns the results of a peer that has no connection here, or does not listen on it.
func (p *Peers) waiting(w peerID) []pendingResult {
	p.mu.Lock()
	due := slices.Clone(p.pending[w])
	all := slices.Clone(p.live[w])
	p.mu.Unlock()
	for _, s := range all {
		if s.out.away() {
			due = append(append(due, s.out.owed()...), s.delegates()...)
		}
	}
	return wanted(due)
}

// delegates returns the delegates of the session that have not ended.
func (s *session) delegates() (due []pendingResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.kind == wire.KindDelegate {
			due = append(due, s.pendingResult(r))
		}
	}
	return due
}

// drop drops results that another hub has fetched.
func (p *Peers) drop(w peerID, of func(core.TaskID) bool) {
	p.mu.Lock()
	before := len(p.pending[w])
	left := slices.DeleteFunc(p.pending[w], func(o pendingResult) bool { return of(o.task) })
	p.pendingCount -= before - len(left)
	if p.pending[w] = left; len(left) == 0 {
		delete(p.pending, w)
	}
	all := slices.Clone(p.live[w])
	p.mu.Unlock()
	for _, s := range all {
		if !s.out.away() {
			continue
		}
		s.out.reclaim(of)
		s.mu.Lock()
		for id, r := range s.requests {
			if r.kind == wire.KindDelegate && of(r.task) {
				delete(s.requests, id)
			}
		}
		s.mu.Unlock()
	}
}

// fetchTime is how long other hubs may take to hand out what waits for a peer.
const fetchTime = 10 * time.Second

// fetchPending fetches what waits for the peer at other hubs.
func (s *session) fetchPending(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	answers, missing := pendingMatter.AskAll(ctx, s.hub, s.principal, s.peer.id)
	if len(missing) > 0 {
		s.log.Info("results that wait for the peer at other hubs may come later", "missing", missing)
	}
	for _, a := range answers {
		if len(a.Out) == 0 {
			continue
		}
		f := fetched{Agent: s.peer.id}
		var due []pendingResult
		for _, o := range a.Out {
			due = append(due, pendingResult{o.Task, o.ID, o.Reports, o.Until})
			f.Tasks = append(f.Tasks, o.Task)
		}
		if !s.inherit(due) {
			return
		}
		if _, err := fetchedMatter.Ask(ctx, s.hub, a.Hub, s.principal, f); err != nil {
			s.log.Info("another hub may send results again", "hub", a.Hub, "error", err)
		}
	}
}

// has reports whether this hub serves the peer. While the hub drains, it serves only peers with a running
// task or an unread result here: it would refuse the others, which another hub can serve.
func (x *HTTP) has(p core.Principal, id core.AgentID) bool {
	of := peerID{cmp.Or(p.ID, string(id)), id}
	var all []*caller
	x.mu.Lock()
	for key, c := range x.peers {
		if key.peerID == of {
			all = append(all, c)
		}
	}
	x.mu.Unlock()
	if x.hub.Draining() == "" {
		return len(all) > 0
	}
	return slices.ContainsFunc(all, func(c *caller) bool { return c.s.busy() || len(c.owed()) > 0 })
}

// busy reports whether the peer has opened a task, or was given one, that has not ended.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)+len(s.byTask) > 0
}

// passOn has the hub answer a request to which the peer made itself known. For a new one it is the
// same hub, whichever gets its first requests, and none that drains.
func (x *HTTP) passOn(w http.ResponseWriter, r *http.Request, p core.Principal, id core.AgentID) bool {
	if x.opts.Forward == nil || x.has(p, id) {
		return false
	}
	by := p
	by.ID = cmp.Or(p.ID, string(id))
	answers, _ := callerMatter.AskAll(r.Context(), x.hub, by, id)
	var up []string
	for _, a := range answers {
		if a.Out {
			return x.opts.Forward(w, r, p, a.Hub)
		}
		up = append(up, a.Hub)
	}
	home := x.hub.HomeOf(Dialect+" "+by.ID+" "+string(id), up)
	return home != "" && x.opts.Forward(w, r, p, home)
}
