package notify

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// agents are the agents that may be down. One goroutine uses them.
type agents struct {
	away map[core.AgentID]time.Time // since when; at most maxAgents
	// told were told to be down and have not come back, children are run by the hub, which brings them back itself.
	told, children *lru.Cache[core.AgentID, struct{}]
	timer          *time.Timer
	redact         func() *redact.Redactor
}

func newAgents(redact func() *redact.Redactor) agents {
	t := time.NewTimer(0)
	t.Stop()
	few := lru.Options[core.AgentID, struct{}]{Count: maxAgents}
	return agents{away: map[core.AgentID]time.Time{}, told: lru.New(few), children: lru.New(few), timer: t, redact: redact}
}

// due returns what has a value when agents have been away for long.
func (a *agents) due() <-chan time.Time { return a.timer.C }

// changed notes that an agent has come, has left, or has another state. It returns what is told at once.
func (a *agents) changed(h *hub.Hub, what happening, now time.Time) []message {
	id := what.agent
	if what.child {
		a.children.Put(id, struct{}{})
	}
	_, child := a.children.Get(id)
	s, here := h.Agent(self, id)
	switch {
	case here && (s.Child == nil || s.Child.State == core.ChildReady):
		delete(a.away, id)
		a.told.Remove(id)
	case here && s.Child.State == core.ChildFailed:
		delete(a.away, id)
		return a.tell(id, s.Child)
	case here && s.Child.State == core.ChildRestarting, !here && !child && what.left:
		a.leave(id, now)
	case !here: // an agent of the settings that comes again, or was taken out of them
		delete(a.away, id)
	}
	return nil
}

// leave notes that an agent is away.
func (a *agents) leave(id core.AgentID, now time.Time) {
	if _, is := a.away[id]; is || len(a.away) == maxAgents {
		return
	}
	if len(a.away) == 0 {
		a.timer.Reset(downAfter)
	}
	a.away[id] = now
}

// down returns the messages about agents that have been away for long.
func (a *agents) down(h *hub.Hub, now time.Time) (all []message) {
	next := time.Duration(0)
	for id, since := range a.away {
		if left := downAfter - now.Sub(since); left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		delete(a.away, id)
		s, here := h.Agent(self, id)
		if !here {
			all = append(all, a.tell(id, nil)...)
		} else if s.Child != nil && s.Child.State != core.ChildReady {
			all = append(all, a.tell(id, s.Child)...)
		}
	}
	if next > 0 {
		a.timer.Reset(next)
	}
	return all
}

// tell returns the message about an agent that is down, once until it is up.
func (a *agents) tell(id core.AgentID, c *core.Child) []message {
	if _, told := a.told.Get(id); told {
		return nil
	}
	a.told.Put(id, struct{}{})
	m := newMessage(AgentDown, time.Now(), data{Agent: id, State: "gone", Reason: "its connection ended, and it has not come back for " + downAfter.String()})
	if c != nil {
		m.Data.State, m.Data.Reason = c.State.String(), cut(a.redact().Text(c.LastError), maxContent)
	}
	return []message{m}
}
