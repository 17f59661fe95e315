package policy

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// Rules are what the operator allows. The zero Rules allow everything but loops.
type Rules struct {
	// Hops is the maximum number of tasks above one in its chain of causes; zero means 8.
	Hops int
	// Ask maps the id of a principal to the agents that it may ask; a principal without an
	// entry may ask all.
	Ask map[string][]core.AgentID
}

// DefaultHops is the default of Rules.Hops.
const DefaultHops = 8

// Chain is the number of tasks above a task, and the agents that work on them (promise
// P10).
type Chain struct {
	Hops   int
	Agents []core.AgentID
}

// ChainBelow returns the chain of a task that the agent opens while it works on tasks
// with the given chains: one hop more than the longest, and all of their agents.
func ChainBelow(agent core.AgentID, above []Chain) Chain {
	var c Chain
	for _, a := range above {
		c.Hops = max(c.Hops, a.Hops+1)
		for _, id := range a.Agents {
			if !slices.Contains(c.Agents, id) {
				c.Agents = append(c.Agents, id)
			}
		}
	}
	if agent != "" && !slices.Contains(c.Agents, agent) {
		c.Agents = append(c.Agents, agent)
	}
	return c
}

// CheckChain returns a loop Fault if the chain is too long.
func (r Rules) CheckChain(c Chain) error {
	limit := r.Hops
	if limit <= 0 {
		limit = DefaultHops
	}
	if c.Hops > limit {
		return core.NewFault(core.CodeLoop, "the chain of tasks has %d hops, the limit is %d: answer instead of asking another agent", c.Hops, limit)
	}
	return nil
}

// CheckAgent returns a loop Fault if the agent is in the chain already.
func (c Chain) CheckAgent(agent core.AgentID) error {
	if slices.Contains(c.Agents, agent) {
		return core.NewFault(core.CodeLoop, "agent %s is already in the chain of this task: asking it again would be a loop", agent)
	}
	return nil
}

// AllowAgent implements [Authorizer]: a principal may ask the agents that Ask names for it.
func (r Rules) AllowAgent(p core.Principal, agent core.AgentID) error {
	if allowed, ok := r.Ask[p.ID]; ok && !slices.Contains(allowed, agent) {
		return core.NewFault(core.CodeNotAuthorized, "%s may not ask agent %s: the operator can allow it", p.ID, agent)
	}
	return nil
}

// Allow implements [Authorizer]. Operators may give every command; others may give those
// that are not for operators, on objects of their own or without an owner.
func (r Rules) Allow(p core.Principal, c core.Command, owner core.Principal) error {
	if p.Operator {
		return nil
	}
	if core.RightOf(c) == core.RightOperate {
		return core.NewFault(core.CodeNotAuthorized, "%s", forOperators(c))
	}
	if owner.ID != "" && owner.ID != p.ID {
		return core.NewFault(core.CodeNotAuthorized, "task %s belongs to somebody else", c.Object())
	}
	return nil
}

// forOperators returns the refusal of a command that is for operators.
func forOperators(c core.Command) string {
	switch c := c.(type) {
	case *core.Open:
		return "you may not ask on behalf of " + c.For.ID
	case core.WatchAll:
		return "the events of all tasks are for operators: read those of your own tasks"
	case core.List:
		return "usage is for operators: the answer of a task of your own has its usage"
	case core.Configure:
		return "the settings of an agent are for operators"
	}
	return c.Act().String() + " is for operators"
}
