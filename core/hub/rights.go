package hub

import (
	"cmp"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// ofEntry returns what rights on an agent are about.
func ofEntry(e *roster.Entry) policy.Object {
	return policy.Object{Target: policy.TargetOf(e.Card), Provider: e.Member.Principal()}
}

// anticipate makes the first decision about a principal, which takes long with many rules,
// without mu: later ones are made while it is held. See [policy.Anticipate] for agents.
func (h *Hub) anticipate(p core.Principal) {
	for _, right := range [...]core.Right{core.RightSee, core.RightAsk} {
		h.authorizer.May(p, right, policy.Object{})
	}
}

// ofAgent is ofEntry for an agent that may have left.
func (h *Hub) ofAgent(id core.AgentID) policy.Object {
	if e, ok := h.roster.Find(id); ok && id != "" {
		return ofEntry(&e)
	}
	return policy.Object{Target: policy.Target{Agent: id, Undeclared: id != ""}}
}

// ofTask returns what rights on a task are about: who asked, and the agent that works on it or
// that it waits for.
func (h *Hub) ofTask(t *task.Task) policy.Object {
	return h.ofWork(t.From(), cmp.Or(t.Agent(), t.To().Preferred()))
}

// ofWork returns what rights on something are about that the owner asked of an agent.
func (h *Hub) ofWork(owner core.Principal, agent core.AgentID) policy.Object {
	o := h.ofAgent(agent)
	o.Owner = owner
	return o
}

// ofPack returns what rights on the pack of a tool are about; the zero Object for a tool of the
// hub, and for one that nobody has.
func (h *Hub) ofPack(tool string) policy.Object {
	id, by := h.packs.PackOf(tool)
	if id == "" {
		return policy.Object{}
	}
	return policy.Object{Target: policy.Target{Pack: id}, Provider: by.Provider().Principal}
}

// sees reports whether the principal may find an agent.
func (h *Hub) sees(p core.Principal, e *roster.Entry) bool {
	return h.authorizer.May(p, core.RightSee, ofEntry(e))
}

// found returns the ids of the agents that the principal may find.
func (h *Hub) found(p core.Principal, ids []core.AgentID) (all []core.AgentID) {
	for _, id := range ids {
		if h.authorizer.May(p, core.RightSee, h.ofAgent(id)) {
			all = append(all, id)
		}
	}
	return all
}

// mayRead reports whether the principal may read what the object describes. What has no known
// owner is for those who may read everything.
func (h *Hub) mayRead(p core.Principal, o policy.Object) bool {
	if o.Owner.ID == "" {
		return h.MayOperate(p)
	}
	return h.authorizer.May(p, core.RightRead, o)
}

// mayAnswer reports whether the principal may answer what an agent asks in the work of an owner.
func (h *Hub) mayAnswer(p core.Principal, agent core.AgentID, owner core.Principal) bool {
	if owner.ID == "" {
		return h.MayOperate(p)
	}
	return h.authorizer.May(p, core.RightAnswer, h.ofWork(owner, agent))
}

// MayOperate reports whether the principal may operate the hub itself, and so read what is
// about everybody.
func (h *Hub) MayOperate(p core.Principal) bool {
	return h.authorizer.May(p, core.RightOperate, policy.Object{})
}

// MaySee reports whether the principal may find an agent, which may have left. What an agent
// declares counts only while it is here.
func (h *Hub) MaySee(p core.Principal, id core.AgentID) bool {
	return h.authorizer.May(p, core.RightSee, h.ofAgent(id))
}

// MayRead reports whether the principal may read a task.
func (h *Hub) MayRead(p core.Principal, t *task.Task) bool { return h.mayRead(p, h.ofTask(t)) }

// MayDecide reports whether the principal may decide on the tool calls of a task.
func (h *Hub) MayDecide(p core.Principal, t *task.Task) bool {
	return h.authorizer.May(p, core.RightApprove, h.ofTask(t))
}

// turns returns those turns that the principal may read. It does not change all.
func (h *Hub) turns(p core.Principal, all []core.Turn) []core.Turn {
	hidden := func(t core.Turn) bool { return !h.mayRead(p, h.ofWork(core.Principal{ID: t.From}, t.Agent)) }
	if !slices.ContainsFunc(all, hidden) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), hidden)
}
