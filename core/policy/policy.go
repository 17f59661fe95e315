package policy

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// DefaultHops is how many tasks may be above one where no setting says it.
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

// CheckHops returns a loop Fault if there are more tasks above than the limit.
func (c Chain) CheckHops(limit int) error {
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

// Default is the [Authorizer] of a hub without a file of rules: everybody asks everybody, and a
// task is for those who asked for it and for operators.
type Default struct{}

// Allow implements [Authorizer].
func (r Default) Allow(p core.Principal, c core.Command, o Object) error {
	right, o := needed(c, o)
	if right == 0 || r.May(p, right, o) {
		return nil
	}
	return refusal(p, c, right, o, r.May(p, core.RightSee, o))
}

// May implements [Authorizer]. Operators have every right, others every right but operate on
// objects of their own or without an owner.
func (Default) May(p core.Principal, right core.Right, o Object) bool {
	switch {
	case decidesForItself(p, right, o):
		return false
	case p.Operator, right == core.RightAsk && o.Target.Pack == "":
		return true
	case right == core.RightOperate:
		return false
	}
	return o.Owner.ID == "" || o.Owner.ID == p.ID
}
