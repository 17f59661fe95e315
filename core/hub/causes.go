package hub

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// cause is a task because of which a session acts, and the chain above what it asks, without
// the session itself. Nobody works any more on one that is over, so its chain counts its hops alone: to ask
// one of its agents something else is no circle.
type cause struct {
	task  core.TaskID
	chain policy.Chain
	over  bool // the task has ended
}

// checkRepeated returns a loop Fault if what an agent asks because of a task that has ended was asked of the
// same address in the same chain already, as far as its tasks are in memory.
func (h *Hub) checkRepeated(because core.TaskID, req *core.Request) error {
	for because != "" && req.Intent != core.IntentNotify {
		t := h.tasks.Get(because)
		if t == nil {
			break
		}
		asked := t.Request()
		if asked.To == req.To && sameContent(&asked, req) {
			return core.NewFault(core.CodeLoop, "task %s of the same chain asked %s the same: answer instead of asking again", because, req.To)
		}
		because = asked.Cause
	}
	return nil
}

// sameContent reports whether two requests ask the same. What else their dialects said may differ each time, as the
// id of a message, and counts only where there is nothing beside it.
func sameContent(a, b *core.Request) bool {
	if a.Content != b.Content || !bytes.Equal(a.Data, b.Data) || !slices.EqualFunc(a.Attachments, b.Attachments, sameFile) {
		return false
	}
	return a.Content != "" || len(a.Data)+len(a.Attachments) > 0 || reflect.DeepEqual(a.Foreign, b.Foreign)
}

func sameFile(a, b core.File) bool {
	return a.Name == b.Name && a.MediaType == b.MediaType && bytes.Equal(a.Data, b.Data)
}

// causes returns what the session acts because of: the tasks of its agent, or the last one that
// just ended. It may narrow them to one of these. A session without work acts because of what
// the other agents of its principal work on, so that an agent does not begin anew when it asks
// over another connection (promise P10), also one whose session asks for it. What the session asks
// has at least so many hops: those of agents at other hubs count in them alone.
func (s *Session) causes(narrow core.TaskID, from core.Principal) (all []cause, hops int, err error) {
	s = s.root()
	all = s.holds(false)
	var theirs []cause
	for _, agent := range s.hub.agentsBeside(s, from) {
		theirs = append(theirs, agent.holds(true)...)
	}
	if narrow != "" {
		for _, c := range append(all, theirs...) {
			if c.task == narrow && !c.over {
				return []cause{c}, 0, nil
			}
		}
		return nil, 0, core.NewFault(core.CodeNotAuthorized, "you do not work on task %s: name one of your own as the cause, or none", narrow)
	}
	hops = s.hub.minHopsElsewhere(s.identity.Principal, from)
	for _, c := range theirs {
		hops = max(hops, c.chain.Hops+1)
	}
	if len(all) == 0 {
		all = theirs
	}
	return longestFirst(all), hops, nil
}

// holds returns the tasks that the agent of the session works on, or else the last one that
// just ended. For another session of its principal the agent itself is in the chain, and what
// has ended counts only if the principal is an agent: a person goes on to other things.
func (s *Session) holds(another bool) (all []cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, w := range s.work {
		all = append(all, cause{task: id, chain: w.job.Chain()})
	}
	who := s.identity.Principal.Credential
	recalls := !another || who != nil && who.Kind == core.KindAgent
	if len(all) == 0 && recalls && s.last.task != "" && time.Now().Before(s.until) {
		all = append(all, s.last)
	}
	if another {
		for i := range all {
			all[i].chain.Agents = append(slices.Clip(all[i].chain.Agents), s.AgentID())
		}
	}
	return all
}

// minHopsElsewhere returns how many hops a task has at least that a principal opens for another one,
// because of what their agents at other hubs work on.
func (h *Hub) minHopsElsewhere(own, from core.Principal) (n int) {
	if h.remote == nil {
		return 0
	}
	for _, p := range []core.Principal{own, from} {
		if p.Authenticated {
			n = max(n, h.roster.MinHops(p.ID, time.Now()))
		}
	}
	return n
}

// tellHops tells the other hubs how many hops a task has at least that the principal of the agent opens
// there. It tells them of agents alone: people and services go on to other things, and what they
// share is with many. Callers hold Hub.mu.
func (s *Session) tellHops() {
	if !s.tellsHops() {
		return
	}
	n, until := 0, time.Time{}
	for _, c := range s.holds(true) {
		n = max(n, c.chain.Hops+1)
		if c.over {
			until = s.recallsUntil()
		}
	}
	s.hub.roster.Change(s.id, func(e *roster.Entry) { e.MinHops, e.HopsUntil = n, until })
}

func (s *Session) tellsHops() bool {
	who := s.identity.Principal
	return s.hub.remote != nil && who.Authenticated && who.Credential != nil && who.Credential.Kind == core.KindAgent
}

// recallsUntil returns until when the last task that has ended is the cause of what the session asks.
func (s *Session) recallsUntil() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until.Round(0) // without the clock of this process
}

// goingOn returns the tasks of causes that are not over.
func (h *Hub) goingOn(causes []cause) (all []*task.Task) {
	for _, c := range causes {
		if t := h.tasks.Get(c.task); t != nil && !c.over {
			all = append(all, t)
		}
	}
	return all
}

// longestFirst sorts causes by the length of the chain above them.
func longestFirst(all []cause) []cause {
	slices.SortFunc(all, func(a, b cause) int {
		return cmp.Or(cmp.Compare(b.chain.Hops, a.chain.Hops), cmp.Compare(a.task, b.task))
	})
	return all
}

// agentsBeside returns the other agents that the principal of a session runs, and those of the
// principal that it asks for, if they proved who they are.
func (h *Hub) agentsBeside(s *Session, from core.Principal) (all []*Session) {
	own := s.identity.Principal
	if !own.Authenticated && !from.Authenticated {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if own.Authenticated {
		all = slices.Clone(h.runs[own.ID])
	}
	if from.Authenticated && from.ID != own.ID {
		all = append(all, h.runs[from.ID]...)
	}
	return slices.DeleteFunc(all, func(o *Session) bool { return o == s })
}

// foreignCause returns the cause that a requester names in [OpenOptions.Above], if there is one.
// The agent that works on it stands above the new task, as the one that asked on.
func (h *Hub) foreignCause(from core.Principal, to core.AgentID, named []core.TaskID) (cause, bool) {
	for _, id := range slices.Backward(named) {
		t := h.tasks.Get(id)
		if t == nil || t.HasEnded() {
			continue
		}
		agent, chain := t.Agent(), t.Chain()
		mine := h.MayOperate(from) || t.From().ID == from.ID
		if w := t.Worker(); w != nil {
			mine = mine || w.Principal().ID == from.ID
		}
		if !mine && (agent == "" || agent != to) {
			return cause{}, false
		}
		if agent != "" {
			chain.Agents = append(slices.Clip(chain.Agents), agent)
		}
		return cause{task: id, chain: chain}, true
	}
	return cause{}, false
}
