// Package policy decides which principal has which right on what, and how long a chain of
// tasks may be.
//
// It decides before anything is sent, so that a refusal is an ordinary Fault with a reason.
// There are two authorizers. [Default] holds without a file of rules: everybody asks everybody,
// and a task is for those who asked for it and for operators. A [Table] is made of the file:
// its first [Rule] that matches decides, and what none matches is refused. [Current] is one of
// the two, and changes while it is used.
//
//	table, err := policy.Compile([]policy.Rule{
//		{Who: []string{"alice"}, May: []core.Right{core.RightSee, core.RightAsk}, To: []string{"team-*"}, Line: 2},
//	})
//	allowed, line := table.Decide(alice, core.RightAsk, policy.TargetOf(card))
package policy
