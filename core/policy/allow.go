package policy

import (
	"slices"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core"
)

// Allow implements [Authorizer].
func (t *Table) Allow(p core.Principal, c core.Command, o Object) error {
	right, o := needed(c, o)
	if right == 0 || t.May(p, right, o) {
		return nil
	}
	return refusal(p, c, right, o, t.May(p, core.RightSee, o))
}

// May implements [Authorizer]: the rules decide, with four exceptions. Who asked for a task
// keeps read and steer of it. A principal sees its own agents and packs. A pack of the settings
// is provided. Nobody, not even an operator, approves what an agent of its own does.
func (t *Table) May(p core.Principal, right core.Right, o Object) bool {
	if decidesForItself(p, right, o) {
		return false
	}
	if p.ID != "" {
		switch right {
		case core.RightRead, core.RightSteer:
			if o.Owner.ID == p.ID {
				return true
			}
		case core.RightSee:
			if o.Provider.ID == p.ID {
				return true
			}
		case core.RightProvide:
			if p.Credential != nil && slices.Contains(p.Credential.Packs, o.Target.Pack) {
				return true
			}
		}
	}
	allowed, _ := t.Decide(p, right, o.Target)
	return allowed
}

// decidesForItself reports whether a principal that proved its identity would approve what
// its own agent does.
func decidesForItself(p core.Principal, right core.Right, o Object) bool {
	return right == core.RightApprove && p.Authenticated && o.Provider.Authenticated && o.Provider.ID == p.ID
}

// needed returns the right that a command needs, and on what; no right if it needs none, or
// if the hub asks about each thing that the command finds.
func needed(c core.Command, o Object) (core.Right, Object) {
	right := core.RightOf(c)
	switch c := c.(type) {
	case *core.Open:
		switch {
		case right == core.RightOperate: // for another principal, whomever it asks
			o.Target = Target{}
		case o.Target.isHub():
			return 0, o
		}
	case core.CallTool:
		if o.Target.isHub() { // a tool of the hub gives commands of its own
			return 0, o
		}
	case core.List:
		if right == core.RightSee {
			return 0, o
		}
	case core.Follow, core.Subscribe, core.Reply:
		return 0, o
	case core.Provide:
		o.Target = Target{Pack: c.Pack}
	case core.Configure:
		if o.Target.isHub() {
			o.Target.Agent = c.Agent
		}
	}
	return right, o
}

// refusal returns the Fault for a command that needs a right which the principal has not. Who
// may not see a pack is told of its tools what it would be told of one that nobody has.
func refusal(p core.Principal, c core.Command, right core.Right, o Object, sees bool) error {
	call, isCall := c.(core.CallTool)
	switch {
	case isCall && !sees:
		return core.NewFault(core.CodeUnsupported, "tool not found: %s", call.Tool)
	case right == core.RightOperate:
		return core.NewFault(core.CodeNotAuthorized, "%s", forOperators(c))
	case decidesForItself(p, right, o):
		return core.NewFault(core.CodeNotAuthorized, "task %s is worked on by an agent of your own: somebody else has to decide", c.Object())
	case o.Owner.ID != "" && o.Owner.ID != p.ID:
		return core.NewFault(core.CodeNotAuthorized, "task %s belongs to somebody else", c.Object())
	}
	return Refusal(p, right, o.Target)
}

// Refusal returns the not_authorized Fault that says which right the principal has not. It
// does not say by which rule: that is for operators, see [Table.Explain].
func Refusal(p core.Principal, right core.Right, to Target) error {
	on, of := "the hub itself", ""
	switch {
	case to.Pack != "":
		on, of = "pack "+to.Pack, " of pack "+to.Pack
	case to.Agent != "":
		on, of = "agent "+string(to.Agent), " of agent "+string(to.Agent)
	}
	switch right {
	case core.RightRead, core.RightSteer:
		on = "tasks" + of
	case core.RightApprove:
		on = "tool calls" + of
	case core.RightAnswer:
		on = "questions" + of
	}
	return core.NewFault(core.CodeNotAuthorized, "%s may not %s %s: the operator can allow it", p.ID, right, on)
}

// forOperators returns the refusal of a command that is for operators.
func forOperators(c core.Command) string {
	switch c := c.(type) {
	case *core.Open:
		return "you may not ask on behalf of " + c.For.ID
	case core.WatchAll:
		return "the events of all tasks are for operators: read those of your own tasks"
	case core.Admit:
		return "who may connect is for operators"
	case core.Drain:
		return "to drain the hub is for operators"
	case core.Forget:
		return "which hubs belong to the cluster is for operators"
	case core.List:
		switch c.What {
		case core.ListAudit:
			return "the audit is for operators"
		case core.ListPrincipals:
			return "the list of principals is for operators"
		}
		return "usage is for operators: the answer of a task of your own has its usage"
	case core.Configure:
		return "the settings of an agent are for operators"
	}
	return c.Act().String() + " is for operators"
}

// Current is an [Authorizer] whose table can be replaced while it is used. Without a table
// [Default] decides. The zero Current is ready for use.
type Current struct{ table atomic.Pointer[Table] }

// Replace replaces the table; nil removes it.
func (c *Current) Replace(t *Table) { c.table.Store(t) }

// Table returns the table that decides, nil if there is none.
func (c *Current) Table() *Table { return c.table.Load() }

// authorizer returns what decides.
func (c *Current) authorizer() Authorizer {
	if t := c.table.Load(); t != nil {
		return t
	}
	return Default{}
}

// Allow implements [Authorizer].
func (c *Current) Allow(p core.Principal, cmd core.Command, o Object) error {
	return c.authorizer().Allow(p, cmd, o)
}

// May implements [Authorizer].
func (c *Current) May(p core.Principal, right core.Right, o Object) bool {
	return c.authorizer().May(p, right, o)
}
